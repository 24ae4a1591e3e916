package kind

import "time"

// KindConfig is the settings that each kind of group has in which the coordinator assigns.
// Their names begin with the kind's, as in group.consumer.session.timeout.ms.
type KindConfig struct {
	Settings
	MaxSize int // group.….max.size
	// Groups has the settings of groups that have their own.
	Groups map[string]Settings
	// AtOnce is up to how many members and partitions the assignor is run in the step
	// itself, zero for as many as a step has time for. Tests have a smaller one.
	AtOnce int
}

// Settings are those that a group may have for itself.
type Settings struct {
	Session   time.Duration // group.….session.timeout.ms
	Heartbeat time.Duration // group.….heartbeat.interval.ms
	Interval  time.Duration // group.….assignment.interval.ms
	// Of streams groups alone.
	Standbys     int           // group.streams.num.standby.replicas
	InitialDelay time.Duration // group.streams.initial.rebalance.delay.ms
}

// DefaultStreamsConfig returns Kafka's defaults.
func DefaultStreamsConfig() KindConfig {
	return KindConfig{
		Settings: Settings{Session: 45 * time.Second, Heartbeat: 5 * time.Second, Interval: time.Second, InitialDelay: 3 * time.Second}, MaxSize: 1<<31 - 1,
	}
}

// Of returns the settings of a group.
func (c *KindConfig) Of(group string) Settings {
	if own, ok := c.Groups[group]; ok {
		return own
	}
	return c.Settings
}
