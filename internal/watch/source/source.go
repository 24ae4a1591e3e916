// Package source has the facts that a watch asks for: this broker's partitions and the
// groups of its shards, what other brokers say of theirs, and the topic that remembers
// where groups were.
//
//	partitions, shards of groups, other leaders, __group_history → Source → watch.Watch
//
// It owns how these are asked without being in anyone's way: a shard's lock is held for a
// portion of its groups, what has not changed is not looked at (marks, stamps), and what
// takes a disk or a network is bounded in time. It draws no conclusions.
package source

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/machine"
	"muster/internal/metadata"
	"muster/internal/partition"
	"muster/internal/record"
	"muster/internal/watch"
	"muster/internal/watch/lag"
)

const (
	// datingTime is how long a pass looks for timestamps of records. A disk may be slow,
	// and after a start there may be many to look for: the next pass goes on.
	datingTime = 300 * time.Millisecond
	// refreshTime and refreshAtOnce bound how a pass asks Redis where streams end that
	// others write to.
	refreshTime   = 2 * time.Second
	refreshAtOnce = 32
)

// Options is the broker as a source asks it.
type Options struct {
	// Image returns the newest metadata, nil before there is any.
	Image func() *metadata.Image
	// Partition returns a partition that this broker leads, nil if it does not.
	Partition func(topic string, index int32) *partition.Partition
	Groups    Shards
	// Ask has another broker handle a request.
	Ask func(ctx context.Context, node int32, req kmsg.Request) (kmsg.Response, error)
	// CreateTopic creates an internal topic; that there is one already is no error.
	CreateTopic func(ctx context.Context, name string) error
	// Fetched says when a client last fetched a partition, if that is known.
	Fetched func(clientID, host, topic string, index int32) (at time.Time, known bool)
	// Count counts records as watch.Source has it; it returns nil if there is no need to.
	Count func(ctx context.Context, places []watch.PartitionOffset) []*lag.Count
	// Away says that the store cannot be reached.
	Away func() bool
	// Shared says that others write to the same store, so that this broker is not told
	// where streams end.
	Shared bool
	Now    func() time.Time
	Logger *slog.Logger
}

// Shards is the coordinator of groups.
type Shards interface {
	// Led returns the shards that this broker has.
	Led() []int32
	// Look calls f with a shard under its lock; false if it is not loaded.
	Look(shard int32, f func(machine.Core)) bool
}

// Source is this broker's partitions and groups. It implements watch.Source.
type Source struct {
	opts    Options
	looking looking
	rolls   map[int32]*roll // Of the shards that the last pass saw.
	marks   shardMarks
	tails   tails
	dating  time.Duration // How long this pass has looked for timestamps.
	// refreshFrom is which of the streams the next pass first asks for.
	refreshFrom int
}

// New returns a source. It looks at nothing yet.
func New(opts Options) *Source { return &Source{opts: opts} }

// Image implements watch.Source.
func (s *Source) Image() *metadata.Image { return s.opts.Image() }

// Prepare implements watch.Source: it asks Redis where the streams end that this broker
// leads. Fetches that wait are told; no one else looks.
func (s *Source) Prepare(ctx context.Context) {
	s.dating = 0
	s.tails.forget(func(topic string, index int32) bool { return s.opts.Partition(topic, index) != nil })
	image := s.opts.Image()
	if !s.opts.Shared || s.opts.Away() || image == nil {
		return
	}
	var all []*partition.Partition
	for _, t := range image.Topics() {
		for i := 0; !t.Internal && t.Config.Traits.SharedWriters && i < len(t.Partitions); i++ {
			if p := s.opts.Partition(t.Name, int32(i)); p != nil {
				all = append(all, p)
			}
		}
	}
	ctx, cancel := context.WithTimeout(ctx, refreshTime)
	defer cancel()
	s.refreshFrom = inTurn(ctx, len(all), s.refreshFrom, func(i int) {
		_ = all[i].Freshen(ctx) // What could not be asked is as it was.
	})
}

// inTurn does something with each of n, several at once, from one of them on and around, and
// returns from which to go on the next time: the first that was not begun when ctx ended.
func inTurn(ctx context.Context, n, from int, do func(i int)) (next int) {
	todo := make(chan int)
	var running sync.WaitGroup
	for range min(refreshAtOnce, n) {
		running.Go(func() {
			for i := range todo {
				do(i)
			}
		})
	}
	defer running.Wait()
	defer close(todo)
	for i := range n {
		at := (from + i) % n
		if ctx.Err() != nil {
			return at
		}
		todo <- at
	}
	return 0
}

// Log implements watch.Source.
func (s *Source) Log(t *metadata.Topic, index int32) (watch.Log, bool) {
	p := s.opts.Partition(t.Name, index)
	if p == nil {
		return watch.Log{}, false
	}
	l := watch.Log{Start: p.LogStartOffset(), LastStable: p.LastStableOffset(), Bytes: p.Size()}
	l.End = p.HighWatermark() // Last, since it only grows.
	l.Tail = s.Tail(p, t.Name, index, l.End)
	return l, true
}

// TimeBits implements watch.Source.
func (s *Source) TimeBits(t *metadata.Topic) uint8 {
	if t.Internal || !t.Config.Traits.Timed {
		return 0
	}
	return uint8(t.Config.SequenceBits)
}

// Fetched implements watch.Source.
func (s *Source) Fetched(r watch.Reader, topic string, index int32) (out watch.Fetched) {
	out.At, out.Known = s.opts.Fetched(r.ClientID, r.Host, topic, index)
	return out
}

// Count implements watch.Source.
func (s *Source) Count(ctx context.Context, places []watch.PartitionOffset) []*lag.Count {
	if s.opts.Away() {
		return nil
	}
	return s.opts.Count(ctx, places)
}

// FirstTime implements lag.Records: the time of the head of the batch that has the offset,
// linear within the batch. Of layout stream the offset tells.
func (s *Source) FirstTime(topic string, index int32, offset int64) (millis int64, ok bool) {
	if t := s.opts.Image().Topic(topic); t != nil && s.TimeBits(t) > 0 {
		return offset >> s.TimeBits(t), true
	}
	p := s.opts.Partition(topic, index)
	if p == nil || s.dating >= datingTime || s.opts.Away() {
		return 0, false
	}
	began := time.Now()
	defer func() { s.dating += time.Since(began) }()
	ctx, cancel := context.WithTimeout(context.Background(), datingTime-s.dating)
	defer cancel()
	head, ok := firstHead(ctx, p, offset)
	if !ok {
		return 0, false
	}
	first, last := head.BaseTimestamp(), head.MaxTimestamp()
	if first < 0 || last < 0 {
		return 0, false // Such records have no time.
	}
	if head.LogAppendTime() || offset <= head.BaseOffset() || head.LastOffsetDelta() <= 0 {
		if head.LogAppendTime() {
			return last, true
		}
		return first, true
	}
	part := min(float64(offset-head.BaseOffset())/float64(head.LastOffsetDelta()), 1)
	return first + int64(part*float64(last-first)), true
}

// firstHead reads the header of the batch that has an offset, or of the next one.
func firstHead(ctx context.Context, p *partition.Partition, offset int64) (record.Batch, bool) {
	f := p.Read(ctx, partition.Fetch{
		Offset: offset, LeaderEpoch: partition.NoEpoch, LastFetchedEpoch: partition.NoEpoch, MaxBytes: 1, MinOne: true,
	})
	defer f.Records.Release()
	if f.Err != nil || f.Records.Len < record.HeaderSize {
		return nil, false
	}
	if f.Records.Bytes != nil {
		return record.Batch(append([]byte(nil), f.Records.Bytes[:record.HeaderSize]...)), true
	}
	head := make([]byte, record.HeaderSize)
	if _, err := f.Records.File.ReadAt(head, f.Records.Pos); err != nil {
		return nil, false
	}
	return head, true
}
