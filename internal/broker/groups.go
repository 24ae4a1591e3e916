package broker

import (
	"context"
	"time"

	"muster/internal/coordinator"
	"muster/internal/group"
	"muster/internal/journal"
	"muster/internal/machine"
	"muster/internal/metadata"
	"muster/internal/metadata/config"
	"muster/internal/store"
	"muster/internal/txn"
)

// openGroups makes the coordinator. Its shards start when there is a topic for
// them.
func (b *Broker) openGroups() {
	b.journal = newJournal(b, groupJournal)
	b.groupConfig.Store(groupConfig(b.cfg))
	b.groups = b.coordinate(metadata.OffsetsTopic, group.Kind(func() group.Config { return *b.groupConfig.Load() }), journals{groups: b.happened, committed: b.committed})
}

// happened passes on what happened to a group. It is called under a lock, and
// nobody waits.
func (b *Broker) happened(entries []journal.Entry) {
	b.journal.add(entries)
	if b.redis != nil && b.redis.native != nil {
		b.redis.native.happened(entries)
	}
}

// committed passes on what the ends of transactions have committed. Like happened, it is
// called under a lock.
func (b *Broker) committed(offsets []machine.Committed) {
	if b.redis == nil || b.redis.native == nil {
		return
	}
	for _, o := range offsets {
		b.redis.native.Committed(o.Group, store.TopicPartition{Topic: o.Topic, Partition: o.Partition}, o.Offset)
	}
}

// changed passes a change of the metadata on: partitions first, then
// coordinators, whose logs must be open. What could not be opened concerns whoever
// made the change; the coordinators hear of it all the same, and load when they
// can.
func (b *Broker) changed(ctx context.Context, before, after *metadata.Image, topics []string) error {
	err := b.manager.Apply(ctx, before, after, topics)
	if before.Config != after.Config {
		cfg := groupConfig(after.Config)
		b.groupConfig.Store(cfg)
		b.groups.Tell(group.Configured{Config: *cfg})
		txns := b.transactionSettings(after.Config)
		b.transactionConfig.Store(txns)
		b.transactions.Tell(txn.Configured{Config: *txns})
		b.server.SetLimits(int(after.Config.Int("max.connections")), int(after.Config.Int("max.connections.per.ip")))
	}
	for _, c := range []struct {
		*coordinator.Coordinator
		topic string
	}{{b.groups, metadata.OffsetsTopic}, {b.transactions, metadata.TransactionsTopic}} {
		c.Changed(before, after, topics)
		b.lead(c.Coordinator, before.Topic(c.topic), after.Topic(c.topic))
	}
	return err
}

func groupConfig(c *config.Broker) *group.Config {
	return &group.Config{
		InitialDelay:     c.Duration("group.initial.rebalance.delay.ms"),
		MinSession:       c.Duration("group.min.session.timeout.ms"),
		MaxSession:       c.Duration("group.max.session.timeout.ms"),
		MaxSize:          int(c.Int("group.max.size")),
		OffsetsRetention: time.Duration(c.Int("offsets.retention.minutes")) * time.Minute,
		SweepInterval:    c.Duration("offsets.retention.check.interval.ms"),
		MaxMetadata:      int(c.Int("offset.metadata.max.bytes")),
		Consumer: group.ConsumerConfig{
			ConsumerSettings: group.ConsumerSettings{
				Session:   c.Duration("group.consumer.session.timeout.ms"),
				Heartbeat: c.Duration("group.consumer.heartbeat.interval.ms"),
				Interval:  c.Duration("group.consumer.assignment.interval.ms"),
			},
			MaxSize: int(c.Int("group.consumer.max.size")), Assignors: group.Assignors(),
			Migration: group.MigrationPolicy(c.Get("group.consumer.migration.policy")),
		},
	}
}
