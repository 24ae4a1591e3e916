package kind

import "time"

// Config is the settings of the coordinator.
type Config struct {
	InitialDelay     time.Duration // group.initial.rebalance.delay.ms
	MinSession       time.Duration // group.min.session.timeout.ms
	MaxSession       time.Duration // group.max.session.timeout.ms
	MaxSize          int           // group.max.size
	OffsetsRetention time.Duration // offsets.retention.minutes
	SweepInterval    time.Duration // offsets.retention.check.interval.ms
	MaxMetadata      int           // offset.metadata.max.bytes
	MaxBytes         int64         // muster.groups.max.bytes, over all shards; 0 for any number
	Consumer         ConsumerConfig
	Streams          KindConfig
	Share            KindConfig
}

// DefaultConfig returns Kafka's defaults.
func DefaultConfig() Config {
	return Config{
		InitialDelay: 3 * time.Second, MinSession: 6 * time.Second, MaxSession: 30 * time.Minute,
		MaxSize: 1<<31 - 1, OffsetsRetention: 7 * 24 * time.Hour, SweepInterval: 10 * time.Minute, MaxMetadata: 4096, Consumer: DefaultConsumerConfig(),
		Share: DefaultShareConfig(), Streams: DefaultStreamsConfig(),
	}
}

// The timers. All but the sweep belong to a group, the session's to a member.
const (
	TimerSession = "session" // a member, or a pending one, must be heard of
	TimerJoin    = "join"    // members must have joined
	TimerSync    = "sync"    // members must have synced
	TimerSweep   = "sweep"   // expired offsets and empty groups go
	TimerAsk     = "ask"     // transaction coordinators must have answered
	TimerRevoke  = "revoke"  // a member of a consumer group must have let go of partitions
	TimerReset   = "reset"   // a reset must have taken effect
)
