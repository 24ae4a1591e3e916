package broker

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/coordinator"
	"muster/internal/machine"
	"muster/internal/metadata"
	"muster/internal/partition"
	"muster/internal/record"
	"muster/internal/store"
	"muster/internal/watch/source"
)

// coordinate makes the coordinator of a row.
func (b *Broker) coordinate(c *coordinated) *coordinator.Coordinator {
	return coordinator.New(coordinator.Options{
		Core: c.core,
		Log:  func(i int32) coordinator.Log { return b.shardLog(c.topic, i) },
		Send: b.send, Panicked: b.meters.Panicked,
		Notes: c.notes, Logger: b.logger, Now: b.ages, Image: b.image,
		Leads: func(partition, epoch int32) bool { return b.leadsShard(c.topic, partition, epoch) },
	})
}

// shardLog returns a partition of an internal topic as its coordinator sees it. What is
// appended of groups is marked for the watch.
func (b *Broker) shardLog(topic string, i int32) coordinator.Log {
	l := &topicLog{manager: b.manager, topic: topic, index: i}
	if topic == metadata.OffsetsTopic {
		l.marks = b.source.Marks(i)
	}
	return l
}

// image returns the newest metadata, nil before there is any.
func (b *Broker) image() *metadata.Image {
	if c := b.leads.Load(); c != nil {
		return c.Image()
	}
	return nil
}

// leadsShard says whether this broker coordinates a partition of an internal
// topic under a leader epoch, by the newest metadata.
//
// Offsets are safe because of it. Whoever takes over knows at least what was
// known when it was made the leader. A topic that was created after that is not
// among what this broker knew while it was the leader, so it accepts no offsets
// of it, which its successor would take for those of a topic that was deleted.
func (b *Broker) leadsShard(topic string, partition, epoch int32) bool {
	if !b.alive() {
		return false
	}
	t := b.image().Topic(topic)
	return t != nil && int(partition) < len(t.Partitions) &&
		t.Partitions[partition] == metadata.Partition{Leader: b.nodeID(), LeaderEpoch: epoch}
}

// lead makes this broker the coordinator of what it leads of an internal topic.
// What it knows of a topic that is gone, because the store lost it, ends.
func (b *Broker) lead(c *coordinator.Coordinator, old, t *metadata.Topic) {
	if old != nil && (t == nil || t.ID != old.ID) {
		c.Lead(slices.Repeat([]int32{coordinator.NotLed}, len(old.Partitions)))
	}
	if t != nil {
		c.Lead(b.led(t))
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

// topicLog is a partition of an internal topic as its coordinator sees it.
type topicLog struct {
	manager *partition.Manager
	topic   string
	index   int32
	marks   *source.Marks // nil if no one looks
	opened  atomic.Pointer[openedLog]
}

// openedLog is a partition in the run of the store in which it was opened for a load.
type openedLog struct {
	part *partition.Partition
	run  store.Run
}

func (l *topicLog) part() *partition.Partition { return l.manager.Get(l.topic, l.index) }

// Append implements coordinator.Log.
func (l *topicLog) Append(ctx context.Context, batch []byte, done func(int64, error)) {
	p := l.part()
	if p == nil {
		done(-1, kerr.NotLeaderForPartition)
		return
	}
	if l.marks != nil {
		l.marks.Batch(batch)
	}
	p.AppendOwnIn(ctx, l.Run().ID, batch, done)
}

// MaxBatch implements coordinator.Log.
func (l *topicLog) MaxBatch() int {
	if p := l.part(); p != nil {
		return p.MaxBatch() - record.HeaderSize
	}
	return 0
}

// Reopen implements coordinator.Log.
func (l *topicLog) Reopen(ctx context.Context) error {
	p := l.part()
	if p == nil {
		return kerr.NotLeaderForPartition
	}
	if err := p.Reopen(ctx); err != nil {
		return err
	}
	l.opened.Store(&openedLog{p, p.Run()})
	return nil
}

// Run implements coordinator.Restarting.
func (l *topicLog) Run() machine.Run {
	if o := l.opened.Load(); o != nil {
		return machine.Run(o.run)
	}
	return machine.Run{}
}

// HasRestarted implements coordinator.Restarting.
func (l *topicLog) HasRestarted() bool {
	o := l.opened.Load()
	return o != nil && o.part.HasRestarted(o.run)
}

// Start implements coordinator.Log. Where there is no partition, Read says so.
func (l *topicLog) Start() int64 {
	if p := l.part(); p != nil {
		return p.LogStartOffset()
	}
	return 0
}

// Read implements coordinator.Log.
func (l *topicLog) Read(ctx context.Context, offset int64) ([]byte, error) {
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
