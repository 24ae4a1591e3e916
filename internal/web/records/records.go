// Package records reads the records of partitions that this broker leads, for those who search
// them over HTTP. It reads as a Fetch does, unpacks what is compressed, and says what became
// of the transactions that records are of. All searches together hold a bounded number of
// bytes.
package records

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/auth"
	"muster/internal/handler"
	"muster/internal/metadata"
	"muster/internal/partition"
	"muster/internal/record"
	"muster/internal/search"
	"muster/internal/store"
)

const (
	// searchMemory is how many bytes of batches all searches hold together.
	searchMemory = 64 << 20
	// largestRecord is how much of a packed record is held.
	largestRecord = 8 << 20
	// countWait is how long records are counted that offsets do not count.
	countWait = time.Second
)

// Options say where records are.
type Options struct {
	Image func() *metadata.Image
	Node  func() int32
	// Partition returns a partition that this broker leads, nil for others.
	Partition func(topic string, index int32) *partition.Partition
	// Counter counts the records of topics whose offsets have gaps; it returns nil if there
	// are none.
	Counter func() handler.Counter
	// Readings is how much someone may read: what consumers may.
	Readings func(who auth.Principal) Quota
}

// Logs reads the partitions that this broker leads. It implements web.Records.
type Logs struct {
	Options
	memory *budget
}

// New returns what reads partitions.
func New(opts Options) *Logs { return &Logs{opts, newBudget(searchMemory)} }

// Partitions implements web.Records.
func (r *Logs) Partitions(topic string, wanted []int32, committed bool) (map[int32]search.Log, []Elsewhere) {
	logs := map[int32]search.Log{}
	var others []Elsewhere
	t := r.Image().Topic(topic)
	for _, i := range wanted {
		if p := r.Partition(topic, i); p != nil {
			logs[i] = &recordLog{p: p, number: i, committed: committed, memory: r.memory}
		} else if t != nil && int(i) < len(t.Partitions) {
			others = append(others, elsewhere(t, i, r.Node()))
		}
	}
	return logs, others
}

// elsewhere says who leads a partition that is not open here. If this broker does, it is
// about to open it.
func elsewhere(t *metadata.Topic, i, self int32) Elsewhere {
	out := Elsewhere{Partition: i, Broker: t.Partitions[i].Leader}
	if out.Broker == self {
		out.Broker = metadata.NoBroker
	}
	return out
}

// Count implements web.Records.
func (r *Logs) Count(ctx context.Context, topic string, spans []search.Span) (total int64, dense bool) {
	counter := r.Counter()
	if counter == nil {
		return -1, true
	}
	var places []handler.Place
	for _, s := range spans {
		tp := store.TopicPartition{Topic: topic, Partition: s.Partition}
		if r.Image().Dense(topic) {
			return -1, true
		}
		places = append(places, handler.Place{TopicPartition: tp, Offset: s.Low})
	}
	ctx, cancel := context.WithTimeout(ctx, countWait)
	defer cancel()
	for _, n := range counter.CountFrom(ctx, places) {
		if n == nil || n.AtLeast {
			return -1, false
		}
		total += n.Records
	}
	return total, false
}

// Await implements web.Records.
func (r *Logs) Await(ctx context.Context, topic string, wanted []int32, committed bool) (ready <-chan struct{}, done func()) {
	w := partition.NewWaiter()
	var watched []*partition.Partition
	for _, i := range wanted {
		p := r.Partition(topic, i)
		if p == nil {
			continue
		}
		if committed {
			p.WatchCommitted(w)
		} else {
			p.Watch(w)
		}
		watched = append(watched, p)
	}
	return w.C, func() {
		for _, p := range watched {
			p.Unwatch(w)
		}
	}
}

// Quota implements web.Records. It is the one of consumers: a search reads as a Fetch does.
func (r *Logs) Quota(who auth.Principal) Quota { return r.Readings(who) }

// Quota is how many bytes of records someone may read, as consumers do.
type Quota interface {
	// Room returns how much of what they want they may read now, or how long they have to
	// wait before they may read anything.
	Room(want int) (n int, wait time.Duration)
	// Take counts what was read.
	Take(n int)
}

// recordLog is a partition. It implements search.Log.
type recordLog struct {
	p         *partition.Partition
	number    int32
	committed bool
	memory    *budget
}

// Bounds implements search.Log.
func (l *recordLog) Bounds(ctx context.Context) (start, end int64, err error) {
	if wire := l.p.Refresh(ctx); wire != nil {
		return 0, 0, readError(wire)
	}
	end = l.p.HighWatermark()
	if l.committed {
		end = l.p.LastStableOffset()
	}
	return min(l.p.LogStartOffset(), end), end, nil
}

// At implements search.Log.
func (l *recordLog) At(ctx context.Context, t time.Time) (int64, error) {
	end := l.p.HighWatermark()
	hit, found, wire := l.p.OffsetForTimestamp(ctx, t.UnixMilli(), end)
	if wire != nil {
		return 0, readError(wire)
	}
	if !found {
		return end, nil
	}
	return hit.Offset, nil
}

// Density implements search.Log.
func (l *recordLog) Density() float64 {
	return float64(l.p.Size()) / float64(max(l.p.HighWatermark()-l.p.LogStartOffset(), 1))
}

func readError(wire *kerr.Error) error {
	if wire == kerr.NotLeaderForPartition {
		return errors.New("this broker does not lead it any more")
	}
	return fmt.Errorf("it could not be read: %s", wire.Description)
}

// Read implements search.Log. It reads as a Fetch does.
func (l *recordLog) Read(ctx context.Context, from int64, most int, f func(*search.Record) bool) (search.Chunk, error) {
	c := search.Chunk{Base: from, Next: from}
	stable := l.p.LastStableOffset()
	below := from < stable
	if l.committed && !below {
		return c, nil
	}
	// Of what is decided the log tells which transactions were aborted.
	got := l.p.Read(ctx, partition.Fetch{
		Offset: from, LeaderEpoch: partition.NoEpoch, LastFetchedEpoch: partition.NoEpoch, MaxBytes: most, MinOne: true, Committed: below,
	})
	if got.Err == kerr.OffsetOutOfRange {
		c.Next = max(from, l.p.LogStartOffset())
		return c, nil
	}
	if got.Err != nil {
		return c, readError(got.Err)
	}
	defer got.Records.Release()
	held := portion{of: l.memory}
	if err := held.set(ctx, int64(got.Records.Len)); err != nil {
		return c, err
	}
	defer held.end()
	b, err := got.Records.Load()
	if err != nil {
		return c, fmt.Errorf("it could not be read: %w", err)
	}
	states := l.states(below, got.Aborted)
	for len(b) > 0 && ctx.Err() == nil {
		batch, rest, err := record.Next(b)
		if err != nil {
			return c, fmt.Errorf("it could not be read: %w", err)
		}
		if c.Bytes == 0 {
			c.Base = batch.BaseOffset()
		}
		c.Bytes += len(batch)
		if !batch.Control() {
			if more := batch.WalkMemory(); more > 0 {
				if err := held.set(ctx, int64(got.Records.Len)+more); err != nil {
					return c, err
				}
			}
			if more := l.walk(ctx, batch, states, f, &c); !more {
				return c, ctx.Err()
			}
		}
		c.Next, b = max(from, batch.LastOffset()+1), rest
	}
	if below && len(b) == 0 && got.Records.Len == 0 {
		c.Next = max(from, stable) // Nothing is left below it.
	}
	return c, ctx.Err()
}

// walk goes through the records of a batch. A batch that cannot be read is passed over.
func (l *recordLog) walk(ctx context.Context, b record.Batch, states func(record.Batch) search.Transaction, f func(*search.Record) bool, c *search.Chunk) bool {
	state := states(b)
	err := b.Walk(largestRecord, func(r io.Reader) io.Reader { return &endingReader{ctx, r} }, func(w *record.Walked) error {
		r := search.Record{
			Partition: l.number, Offset: w.Offset, Timestamp: w.Timestamp, AppendTime: b.LogAppendTime(), Key: w.Key, Value: w.Value,
			KeySize: w.KeySize, ValueSize: w.ValueSize, Cut: w.Cut, Transaction: state, ProducerID: b.ProducerID(),
		}
		for _, h := range w.Headers {
			r.Headers = append(r.Headers, search.Header{Name: h.Key, Value: h.Value})
		}
		if !f(&r) {
			return errEnough
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) && ctx.Err() == nil {
		c.Unreadable++
		return true
	}
	return err == nil
}

var errEnough = errors.New("enough")

// states returns what says what has become of the transaction of a batch.
func (l *recordLog) states(decided bool, aborted []store.Aborted) func(record.Batch) search.Transaction {
	open := map[int64]int64{}
	if !decided {
		for _, t := range l.p.OpenTxns() {
			open[t.ProducerID] = t.FirstOffset
		}
	}
	return func(b record.Batch) search.Transaction {
		if !b.Transactional() {
			return search.NoTransaction
		}
		if decided {
			if slices.ContainsFunc(aborted, func(a store.Aborted) bool {
				return a.ProducerID == b.ProducerID() && a.FirstOffset <= b.BaseOffset() && b.BaseOffset() <= a.LastOffset
			}) {
				return search.Aborted
			}
			return search.Committed
		}
		if first, ok := open[b.ProducerID()]; ok && first <= b.BaseOffset() {
			return search.Open
		}
		return search.Waiting
	}
}

// endingReader ends with a context: what unpacks to very much is not unpacked for
// no one.
type endingReader struct {
	ctx context.Context
	r   io.Reader
}

func (e *endingReader) Read(b []byte) (int, error) {
	if err := e.ctx.Err(); err != nil {
		return 0, err
	}
	return e.r.Read(b)
}

// Elsewhere is a partition that another broker leads.
type Elsewhere struct {
	Partition int32 `json:"partition"`
	Broker    int32 `json:"broker" doc:"-1 if none does"`
}
