package storetest_test

import (
	"context"
	"math"
	"sort"
	"sync"
	"testing"

	"muster/internal/record"
	"muster/internal/store"
	"muster/internal/store/mem"
	"muster/internal/store/storetest"
)

// The suite must ask for no more than the contract promises. sparse is an
// engine that uses what the contract leaves free: there are gaps between the
// offsets of batches, and Read builds batches anew, one for each record where
// no producer counts them.
type sparse struct {
	store.Store
	mu   sync.Mutex
	maps map[store.TopicPartition]*offsets
}

// offsets translates between the offsets shown and the dense ones of the engine
// beneath, of which they are a list.
type offsets struct {
	mu    sync.RWMutex
	shown []int64
	start int64
	end   int64
}

const firstShown, gap = 1 << 40, 1000

func newSparse() *sparse {
	return &sparse{Store: mem.New(), maps: map[store.TopicPartition]*offsets{}}
}

func (s *sparse) Open(ctx context.Context, tp store.TopicPartition, epoch int32, cfg store.LogConfig) (store.Log, error) {
	l, err := s.Store.Open(ctx, tp, epoch, cfg)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.maps[tp] == nil {
		s.maps[tp] = &offsets{}
	}
	return &sparseLog{Log: l, offsets: s.maps[tp]}, nil
}

func (s *sparse) Delete(ctx context.Context, tp store.TopicPartition) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.maps, tp)
	return s.Store.Delete(ctx, tp)
}

// dense returns the first dense offset that is shown at or after an offset.
func (o *offsets) dense(shown int64) int64 {
	return int64(sort.Search(len(o.shown), func(i int) bool { return o.shown[i] >= shown }))
}

func (o *offsets) show(dense int64) int64 {
	if dense >= int64(len(o.shown)) {
		return o.end
	}
	return o.shown[dense]
}

type sparseLog struct {
	store.Log
	*offsets
}

func (l *sparseLog) Append(ctx context.Context, batch []byte) (store.Appended, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a, err := l.Log.Append(ctx, batch)
	if err != nil {
		return a, err
	}
	b := record.Batch(batch)
	b.SetBaseOffset(max(l.end+gap, firstShown))
	for o := b.BaseOffset(); o <= b.LastOffset(); o++ {
		l.shown = append(l.shown, o)
	}
	l.end = b.LastOffset() + 1
	return store.Appended{BaseOffset: b.BaseOffset(), LastOffset: b.LastOffset()}, nil
}

func (l *sparseLog) Read(ctx context.Context, req store.ReadRequest) (store.Records, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	r, err := l.Log.Read(ctx, store.ReadRequest{Offset: l.dense(req.Offset), NextOffset: math.MaxInt64, MaxBytes: math.MaxInt32, MinOne: true})
	if err != nil {
		return r, err
	}
	if req.Offset < l.start || req.Offset > l.end {
		return r, store.ErrOffsetOutOfRange
	}
	var out []byte
	for rest := r.Bytes; len(rest) > 0; {
		var b record.Batch
		if b, rest, err = record.Next(rest); err != nil {
			return r, err
		}
		anew, err := l.rebuild(b)
		if err != nil {
			return r, err
		}
		for _, b := range anew {
			if b.LastOffset() < req.Offset {
				continue
			}
			if b.LastOffset() >= req.NextOffset || len(out)+len(b) > req.MaxBytes && (len(out) > 0 || !req.MinOne) {
				return store.BytesRecords(out), nil
			}
			out = append(out, b...)
		}
	}
	return store.BytesRecords(out), nil
}

// rebuild makes a batch of each record, with the offsets that are shown.
func (l *sparseLog) rebuild(b record.Batch) (out []record.Batch, err error) {
	t := record.TemplateOf(b)
	if b.ProducerID() >= 0 {
		moved := append(record.Batch(nil), b...)
		moved.SetBaseOffset(l.show(b.BaseOffset()))
		return []record.Batch{moved}, nil
	}
	t.LastOffsetDelta = 0
	err = b.Each(func(r *record.Record) error {
		t.BaseOffset = l.show(r.Offset)
		alone := *r
		alone.OffsetDelta = 0
		nb, err := record.Build(t, []record.Record{alone})
		out = append(out, nb)
		return err
	})
	return out, err
}

func (l *sparseLog) Bounds() (logStart, logEnd int64) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.start, l.end
}

func (l *sparseLog) Epochs() []store.EpochStart {
	l.mu.RLock()
	defer l.mu.RUnlock()
	epochs := l.Log.Epochs()
	for i := range epochs {
		epochs[i].Start = l.show(epochs[i].Start)
	}
	return epochs
}

func (l *sparseLog) OffsetForTimestamp(ctx context.Context, ts int64) (store.TimestampOffset, bool, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	hit, ok, err := l.Log.OffsetForTimestamp(ctx, ts)
	if ok {
		hit.Offset = l.show(hit.Offset)
	}
	return hit, ok, err
}

func (l *sparseLog) MaxTimestamp(ctx context.Context) (store.TimestampOffset, bool, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	hit, ok, err := l.Log.MaxTimestamp(ctx)
	if ok {
		hit.Offset = l.show(hit.Offset)
	}
	return hit, ok, err
}

func (l *sparseLog) Trim(ctx context.Context, newStart int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	to := l.dense(newStart)
	if newStart > l.end {
		to = math.MaxInt64
	}
	err := l.Log.Trim(ctx, to)
	if err == nil {
		l.start = max(l.start, newStart)
	}
	return err
}

func (l *sparseLog) Retain(ctx context.Context, r store.Retention) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	r.NextOffset = l.dense(r.NextOffset)
	before, _ := l.Log.Bounds()
	err := l.Log.Retain(ctx, r)
	if after, _ := l.Log.Bounds(); after > before {
		l.start = l.shown[after-1] + 1
	}
	return err
}

func (l *sparseLog) Compact(ctx context.Context, c store.Compaction) error {
	l.mu.RLock()
	defer l.mu.RUnlock()
	c.NextOffset = l.dense(c.NextOffset)
	return l.Log.Compact(ctx, c)
}

func (l *sparseLog) Producers(ctx context.Context) ([]store.Producer, int64, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	ps, from, err := l.Log.Producers(ctx)
	return translated(ps, l.show), max(l.show(from), l.start), err
}

func (l *sparseLog) SaveProducers(ctx context.Context, ps []store.Producer, next int64) error {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.Log.SaveProducers(ctx, translated(ps, l.dense), l.dense(next))
}

func (l *sparseLog) Aborted(ctx context.Context, from, next int64) ([]store.Aborted, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	list, err := l.Log.Aborted(ctx, l.dense(from), l.dense(next))
	return moved(list, l.show), err
}

func (l *sparseLog) NoteAborted(ctx context.Context, list []store.Aborted) error {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.Log.NoteAborted(ctx, moved(list, l.dense))
}

// moved returns aborted transactions with other offsets.
func moved(list []store.Aborted, to func(int64) int64) (out []store.Aborted) {
	for _, a := range list {
		out = append(out, store.Aborted{ProducerID: a.ProducerID, FirstOffset: to(a.FirstOffset), LastOffset: to(a.LastOffset)})
	}
	return out
}

// translated returns producers with other offsets.
func translated(ps []store.Producer, to func(int64) int64) []store.Producer {
	out := store.NewProducerMap(ps)
	for _, p := range out {
		if p.TxnFirst != store.NoTxn {
			p.TxnFirst = to(p.TxnFirst)
		}
		for i := range p.Batches {
			p.Batches[i].BaseOffset, p.Batches[i].LastOffset = to(p.Batches[i].BaseOffset), to(p.Batches[i].LastOffset)
		}
	}
	return out.List()
}

func openSparse(t *testing.T) storetest.Harness {
	s := newSparse()
	t.Cleanup(func() { s.Close() })
	return storetest.Harness{Store: s}
}

func TestAnEngineWithGapsPassesTheSuite(t *testing.T) { storetest.Run(t, openSparse) }

func TestAnEngineWithGapsIsTheSameAsOneWithout(t *testing.T) {
	dense := func(t *testing.T) storetest.Harness {
		s := mem.New()
		t.Cleanup(func() { s.Close() })
		return storetest.Harness{Store: s}
	}
	for seed := range uint64(5) {
		storetest.Metamorphic(t, dense, openSparse, seed)
	}
}
