// Package writer writes journals: what happens to groups, to transactions, and what people
// do, each to a topic of its own, as JSON.
//
//	Add (never waits) → queue → Run: all that has gathered → as few batches as possible for
//	                                 each partition, all partitions at once
//
// Entries are added under locks, so no one waits for a journal: what does not fit is left
// out, and counted. While batches are on their way, what comes gathers for the next ones,
// within a number of bytes; so a store that takes a network's round trip for each batch
// keeps up as well as a disk. Entries with the same key stay in their order.
//
// The package creates the topics when there is something to write. It does not know what
// entries say.
package writer

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"time"

	"muster/internal/journal"
	"muster/internal/machine"
	"muster/internal/metadata"
	"muster/internal/partition"
	"muster/internal/record"
)

const (
	// MaxBytes is how much may wait to be written, and be on its way, by Kind.Size. The
	// last step may go beyond it: a shard that has loaded tells of each of its groups.
	MaxBytes = 8 << 20
	// appendTime is how long a batch may take.
	appendTime = 10 * time.Second
)

// Kind is what a journal is about.
type Kind[E any] struct {
	Topic string
	Name  string // For people.
	Key   func(*E) string
	At    func(*E) time.Time
	Size  func(*E) int // About how many bytes of memory an entry takes.
	// Anywhere says that an entry is not lost if another broker leads its partition: any
	// that this one leads will do.
	Anywhere bool
}

// Options is the broker as journals need it.
type Options struct {
	// Topic returns a topic by the newest metadata, nil if there is none.
	Topic func(name string) *metadata.Topic
	// CreateTopic creates an internal topic; that there is one already is no error.
	CreateTopic func(ctx context.Context, name string) error
	// Partition returns a partition that this broker leads, nil if it does not.
	Partition func(topic string, index int32) *partition.Partition
	// Dropped is told of entries that were left out or could not be written.
	Dropped func(entries int)
	Logger  *slog.Logger
}

// Journal writes entries of a kind.
type Journal[E any] struct {
	Kind[E]
	opts Options
	// Lost is told of entries that could not be written; nil to log that it was so. It must
	// be set before Run.
	Lost func(entries []E, err error)

	more chan struct{} // There is something to write.

	mu    sync.Mutex
	queue [][]E // Steps that are not on their way yet. Entries of a step belong to one partition.
	bytes int   // Of these, and of those on their way.
}

// New returns a journal that has nothing to write.
func New[E any](opts Options, kind Kind[E]) *Journal[E] {
	return &Journal[E]{Kind: kind, opts: opts, more: make(chan struct{}, 1)}
}

// Add takes the entries of a step, which then belong to the journal. It never waits.
func (j *Journal[E]) Add(entries []E) {
	if !j.Offer(entries) {
		j.opts.Logger.Warn(j.Name+" falls behind; entries left out", "count", len(entries), "first", j.Key(&entries[0]))
	}
}

// Offer is Add, and says whether there was room.
func (j *Journal[E]) Offer(entries []E) bool {
	if !j.put(entries) {
		j.opts.Dropped(len(entries))
		return false
	}
	select {
	case j.more <- struct{}{}:
	default:
	}
	return true
}

func (j *Journal[E]) put(entries []E) bool {
	size := j.size(entries)
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.bytes >= MaxBytes {
		return false
	}
	j.queue, j.bytes = append(j.queue, entries), j.bytes+size
	return true
}

func (j *Journal[E]) size(entries []E) (n int) {
	for i := range entries {
		n += j.Size(&entries[i])
	}
	return n
}

// Free is which part of the journal's room is free, from 0 to 1.
func (j *Journal[E]) Free() float64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return max(1-float64(j.bytes)/MaxBytes, 0)
}

// Run writes until ctx ends, and then what is still there.
func (j *Journal[E]) Run(ctx context.Context) {
	for {
		ended := ctx.Err() != nil
		switch steps := j.take(); {
		case len(steps) > 0:
			j.write(context.Background(), steps)
		case ended:
			return
		default:
			select {
			case <-j.more:
			case <-ctx.Done():
			}
		}
	}
}

// take returns what is to be written.
func (j *Journal[E]) take() [][]E {
	j.mu.Lock()
	defer j.mu.Unlock()
	steps := j.queue
	j.queue = nil
	return steps
}

// write writes steps: those of a partition in their order, all partitions at once.
func (j *Journal[E]) write(ctx context.Context, steps [][]E) {
	t, err := j.topic(ctx)
	to := map[*partition.Partition][]E{} // Under nil, those that cannot be written.
	for _, entries := range steps {
		var p *partition.Partition
		if err == nil {
			p = j.partition(t, j.Key(&entries[0]))
		}
		to[p] = append(to[p], entries...)
	}
	var writing sync.WaitGroup
	for p, entries := range to {
		writing.Go(func() {
			size := j.size(entries)
			if p == nil {
				j.lost(entries, cmp.Or(err, errElsewhere))
			} else if left, err := j.appendTo(ctx, p, entries); err != nil {
				j.lost(left, err)
			}
			j.mu.Lock()
			defer j.mu.Unlock()
			j.bytes -= size
		})
	}
	writing.Wait()
}

var errElsewhere = errors.New("another broker leads its partition now")

// appendTo appends entries as JSON in as few batches as the partition allows, and returns
// those that it could not.
func (j *Journal[E]) appendTo(ctx context.Context, p *partition.Partition, entries []E) (left []E, err error) {
	for len(entries) > 0 {
		records, err := j.encode(entries, p.MaxBatch()-record.HeaderSize)
		if err != nil {
			return entries, err
		}
		if err := Append(ctx, p, records); err != nil {
			return entries, err
		}
		entries = entries[len(records):]
	}
	return nil, nil
}

// encode makes records of as many entries as fit into a batch, of one at least.
func (j *Journal[E]) encode(entries []E, limit int) ([]record.Record, error) {
	var records []record.Record
	size := 0
	for i := range entries {
		key := []byte(j.Key(&entries[i]))
		value, err := json.Marshal(&entries[i])
		if err != nil {
			return nil, err
		}
		if size += machine.RecordOverhead + len(key) + len(value); size > limit && i > 0 {
			break
		}
		records = append(records, record.Record{Key: key, Value: value, OffsetDelta: int32(i), Timestamp: j.At(&entries[i]).UnixMilli()})
	}
	return records, nil
}

// Append appends one batch of our own and waits until it is stored.
func Append(ctx context.Context, p *partition.Partition, records []record.Record) error {
	batch, err := record.Build(record.PlainTemplate(), records)
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	p.Append(ctx, batch, partition.Produce{Acks: 1}, func(a partition.Appended) {
		if a.Err != nil {
			done <- a.Err
			return
		}
		done <- nil
	})
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(appendTime):
		return context.DeadlineExceeded
	}
}

// lost tells of entries that could not be written.
func (j *Journal[E]) lost(entries []E, err error) {
	j.opts.Dropped(len(entries))
	if j.Lost != nil {
		j.Lost(entries, err)
		return
	}
	j.opts.Logger.Warn(j.Name+" could not be written", "error", err)
}

// partition returns where the entries of a group, or of a transactional id, and its
// neighbours in the shard go; nil if another broker leads that. Where brokers share the
// work there is a partition for each shard, with the same leader.
func (j *Journal[E]) partition(t *metadata.Topic, key string) *partition.Partition {
	n := int32(len(t.Partitions))
	own := journal.PartitionFor(key, n)
	for i := int32(0); i == 0 || j.Anywhere && i < n; i++ {
		if p := j.opts.Partition(t.Name, (own+i)%n); p != nil {
			return p
		}
	}
	return nil
}

// topic returns the topic, which is created if it is not there. It may be gone right after
// that: another broker deletes it, or Redis loses the metadata.
func (j *Journal[E]) topic(ctx context.Context) (*metadata.Topic, error) {
	if t := j.opts.Topic(j.Topic); t != nil {
		return t, nil
	}
	if err := j.opts.CreateTopic(ctx, j.Topic); err != nil {
		return nil, err
	}
	if t := j.opts.Topic(j.Topic); t != nil {
		return t, nil
	}
	return nil, errors.New("its topic was created, and is gone")
}
