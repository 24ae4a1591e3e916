package source

import (
	"context"
	"sync"
	"time"

	"muster/internal/partition"
	"muster/internal/record"
	"muster/internal/watch"
)

const (
	// tailBatches is how many batches of a tail are looked at.
	tailBatches = 64
	// tailTime is how long tails are looked at in tailEvery.
	tailTime  = 100 * time.Millisecond
	tailEvery = watch.Interval
)

// tails knows which offsets at the end of partitions at rest are of nothing to read. A
// transaction ends with a record of its own that no one reads: a client that commits the
// offset after the last record which it has seen stays before it for good, without being
// behind.
type tails struct {
	mu    sync.Mutex
	at    map[watch.Part]tail
	began time.Time     // Of the time in which took was used.
	took  time.Duration // How long tails were looked at since.
}

// tail is the end of a partition.
type tail struct {
	of          *partition.Partition // Another one if the topic was created anew, or came back.
	end, length int64
	known       bool
}

// Tail returns how many offsets at the end of a partition are of nothing to read. It is
// looked at once, if the partition ends where it did when someone last asked.
func (s *Source) Tail(p *partition.Partition, topic string, index int32, end int64) int64 {
	t, part := &s.tails, watch.Part{Topic: topic, Partition: index}
	length, left := t.seen(part, p, end)
	if left <= 0 || s.opts.Away() {
		return length
	}
	if in := s.opts.Image().Topic(topic); in == nil || !in.Internal && !in.Config.Traits.Transactions {
		return 0
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), left)
	defer cancel()
	at, known := readableEnd(ctx, p, end)
	t.set(part, tail{p, end, end - at, known}, time.Since(began))
	return end - at
}

// seen returns what is known of a tail, and for how long it may be looked at: not at all if
// there is no need, or no time.
func (t *tails) seen(part watch.Part, p *partition.Partition, end int64) (length int64, look time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	was, seen := t.at[part]
	switch {
	case !seen || was.of != p || was.end != end:
		if t.at == nil {
			t.at = map[watch.Part]tail{}
		}
		t.at[part] = tail{of: p, end: end}
		return 0, 0
	case was.known:
		return was.length, 0
	}
	if now := time.Now(); now.Sub(t.began) >= tailEvery {
		t.began, t.took = now, 0
	}
	return 0, tailTime - t.took
}

func (t *tails) set(part watch.Part, is tail, took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.at[part] = is
	t.took += took
}

// forget drops the partitions that this broker does not lead.
func (t *tails) forget(leads func(topic string, index int32) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for part := range t.at {
		if !leads(part.Topic, part.Partition) {
			delete(t.at, part)
		}
	}
}

// readableEnd looks from the end on for a batch that can be read: one with records, of a
// transaction that was not aborted if it is of one. If that is not found soon, there is one.
func readableEnd(ctx context.Context, p *partition.Partition, end int64) (at int64, known bool) {
	at, start := end, p.LogStartOffset()
	for range tailBatches {
		if at <= start {
			return at, true
		}
		head, ok := firstHead(ctx, p, at-1)
		if !ok || head.BaseOffset() >= at {
			return end, false
		}
		if !head.Control() && !aborted(ctx, p, head) {
			return at, true
		}
		at = head.BaseOffset()
	}
	return end, true
}

// aborted says whether a batch belongs to a transaction that was aborted.
func aborted(ctx context.Context, p *partition.Partition, head record.Batch) bool {
	if !head.Transactional() {
		return false
	}
	f := p.Read(ctx, partition.Fetch{
		Offset: head.BaseOffset(), LeaderEpoch: partition.NoEpoch, LastFetchedEpoch: partition.NoEpoch, MaxBytes: 1, MinOne: true, Committed: true,
	})
	defer f.Records.Release()
	for _, a := range f.Aborted {
		if f.Err == nil && a.ProducerID == head.ProducerID() && a.FirstOffset <= head.BaseOffset() && head.BaseOffset() < a.LastOffset {
			return true
		}
	}
	return false
}
