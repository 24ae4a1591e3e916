package kind

import "time"

// DefaultShareConfig returns Kafka's defaults for share groups.
func DefaultShareConfig() KindConfig {
	return KindConfig{Settings: Settings{Session: 45 * time.Second, Heartbeat: 5 * time.Second, Interval: time.Second}, MaxSize: 200}
}
