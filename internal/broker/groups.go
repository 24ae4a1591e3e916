package broker

import (
	"context"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/coordinator"
	"muster/internal/group"
	"muster/internal/journal"
	"muster/internal/metadata"
	"muster/internal/metadata/config"
	"muster/internal/partition"
	"muster/internal/record"
)

// openGroups makes the coordinator. Its shards start when there is a topic for
// them.
func (b *Broker) openGroups() {
	b.journal = newJournal(b)
	b.groupConfig.Store(groupConfig(b.cfg))
	b.groups = coordinator.New(coordinator.Options{
		Kind:    group.Kind(func() group.Config { return *b.groupConfig.Load() }),
		Log:     func(i int32) coordinator.Log { return offsetsLog{b.manager, i} },
		Journal: b.happened, Logger: b.logger, Image: b.image, Leads: b.leadsGroups,
	})
}

// image returns the newest metadata, nil before there is any.
func (b *Broker) image() *metadata.Image {
	if c := b.leads.Load(); c != nil {
		return c.Image()
	}
	return nil
}

// leadsGroups says whether this broker coordinates a partition of the groups'
// topic under a leader epoch, by the newest metadata.
//
// Offsets are safe because of it. Whoever takes over knows at least what was
// known when it was made the leader. A topic that was created after that is not
// among what this broker knew while it was the leader, so it accepts no offsets
// of it, which its successor would take for those of a topic that was deleted.
func (b *Broker) leadsGroups(partition, epoch int32) bool {
	if !b.alive() {
		return false
	}
	t := b.image().Topic(metadata.OffsetsTopic)
	return t != nil && int(partition) < len(t.Partitions) &&
		t.Partitions[partition] == metadata.Partition{Leader: b.nodeID(), LeaderEpoch: epoch}
}

// happened passes on what happened to a group. It is called under a lock, and
// nobody waits.
func (b *Broker) happened(entries []journal.Entry) {
	b.journal.add(entries)
	if b.redis != nil && b.redis.native != nil {
		b.redis.native.happened(entries)
	}
}

// changed passes a change of the metadata on: partitions first, then groups,
// whose logs must be open. What could not be opened concerns whoever made the
// change; the groups hear of it all the same, and load when they can.
func (b *Broker) changed(ctx context.Context, before, after *metadata.Image, topics []string) error {
	err := b.manager.Apply(ctx, before, after, topics)
	if before.Config != after.Config {
		cfg := groupConfig(after.Config)
		b.groupConfig.Store(cfg)
		b.groups.Tell(group.Configured{Config: *cfg})
		b.server.SetLimits(int(after.Config.Int("max.connections")), int(after.Config.Int("max.connections.per.ip")))
	}
	b.groups.Changed(before, after, topics)
	b.lead(before.Topic(metadata.OffsetsTopic), after.Topic(metadata.OffsetsTopic))
	return err
}

// lead makes this broker the coordinator of what it leads of the groups' topic.
// What it knows of a topic that is gone, because the store lost it, ends.
func (b *Broker) lead(old, t *metadata.Topic) {
	if old != nil && (t == nil || t.ID != old.ID) {
		b.groups.Lead(slices.Repeat([]int32{coordinator.NotLed}, len(old.Partitions)))
	}
	if t != nil {
		b.groups.Lead(b.led(t))
	}
}

// led returns the leader epochs of the partitions of a topic that this broker
// leads.
func (b *Broker) led(t *metadata.Topic) []int32 {
	out := make([]int32, len(t.Partitions))
	for i, p := range t.Partitions {
		out[i] = coordinator.NotLed
		if p.Leader == b.nodeID() {
			out[i] = p.LeaderEpoch
		}
	}
	return out
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
	}
}

// offsetsLog is a partition of __consumer_offsets as the coordinator sees it.
type offsetsLog struct {
	manager *partition.Manager
	index   int32
}

func (l offsetsLog) part() *partition.Partition { return l.manager.Get(metadata.OffsetsTopic, l.index) }

// Append implements coordinator.Log.
func (l offsetsLog) Append(ctx context.Context, batch []byte, done func(int64, error)) {
	p := l.part()
	if p == nil {
		done(-1, kerr.NotLeaderForPartition)
		return
	}
	p.AppendOwn(ctx, batch, done)
}

// MaxBatch implements coordinator.Log.
func (l offsetsLog) MaxBatch() int {
	if p := l.part(); p != nil {
		return p.MaxBatch() - record.HeaderSize
	}
	return 0
}

// Reopen implements coordinator.Log.
func (l offsetsLog) Reopen(ctx context.Context) error {
	p := l.part()
	if p == nil {
		return kerr.NotLeaderForPartition
	}
	return p.Reopen(ctx)
}

// Start implements coordinator.Log. Where there is no partition, Read says so.
func (l offsetsLog) Start() int64 {
	if p := l.part(); p != nil {
		return p.LogStartOffset()
	}
	return 0
}

// Read implements coordinator.Log.
func (l offsetsLog) Read(ctx context.Context, offset int64) ([]byte, error) {
	p := l.part()
	if p == nil {
		return nil, kerr.NotLeaderForPartition
	}
	f := p.Read(ctx, partition.Fetch{
		Offset: offset, LeaderEpoch: partition.NoEpoch, LastFetchedEpoch: partition.NoEpoch, MaxBytes: 1 << 20, MinOne: true,
	})
	if f.Err != nil {
		return nil, f.Err
	}
	defer f.Records.Release()
	return f.Records.Load()
}
