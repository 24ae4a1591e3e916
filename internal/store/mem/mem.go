// Package mem is the engine that keeps partition logs in memory, for tests and
// for brokers that need not remember. It is also the model that other engines
// are compared with, so it is as plain as the contract allows: a log is a list
// of batches behind one lock.
package mem

import (
	"context"
	"slices"
	"sort"
	"sync"

	"muster/internal/record"
	"muster/internal/store"
)

// Store is a set of logs in memory.
type Store struct {
	mu     sync.Mutex
	logs   map[store.TopicPartition]*log
	closed bool
}

var _ store.Store = (*Store)(nil)

// New returns an empty store.
func New() *Store { return &Store{logs: map[store.TopicPartition]*log{}} }

// Open implements store.Store.
func (s *Store) Open(_ context.Context, tp store.TopicPartition, leaderEpoch int32, _ store.LogConfig) (store.Log, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, store.ErrClosed
	}
	l := s.logs[tp]
	if l == nil {
		l = &log{epoch: -1}
		s.logs[tp] = l
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if leaderEpoch < l.epoch {
		return nil, &store.FencedError{Epoch: l.epoch}
	}
	l.epoch = leaderEpoch
	l.owner = &handle{log: l, epoch: leaderEpoch}
	return l.owner, nil
}

// Delete implements store.Store.
func (s *Store) Delete(_ context.Context, tp store.TopicPartition) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return store.ErrClosed
	}
	if l := s.logs[tp]; l != nil {
		l.close()
		delete(s.logs, tp)
	}
	return nil
}

// List implements store.Store.
func (s *Store) List(context.Context) ([]store.TopicPartition, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, store.ErrClosed
	}
	var out []store.TopicPartition
	for tp := range s.logs {
		out = append(out, tp)
	}
	return out, nil
}

// Close implements store.Store.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, l := range s.logs {
		l.close()
	}
	return nil
}

type log struct {
	mu       sync.RWMutex
	owner    *handle
	epoch    int32
	closed   bool
	batches  []record.Batch
	logStart int64
	logEnd   int64
	size     int64
	epochs   []store.EpochStart

	producers     []store.Producer
	producersNext int64
	cleaned       store.Cleaned
	aborted       store.AbortedList
}

func (l *log) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed, l.batches = true, nil
}

type handle struct {
	*log
	epoch int32
}

var _ store.Log = (*handle)(nil)

// mayChange says whether the handle owns the log. The lock is held.
func (h *handle) mayChange() error {
	switch {
	case h.closed:
		return store.ErrClosed
	case h.owner == h:
		return nil
	case h.epoch < h.log.epoch:
		return store.ErrFenced
	default:
		return store.ErrClosed
	}
}

// Append implements store.Log.
func (h *handle) Append(_ context.Context, batch []byte) (store.Appended, error) {
	b := record.Batch(batch)
	if n, err := record.Peek(b); err != nil || n != len(b) {
		return store.Appended{}, store.ErrInvalidBatch
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.mayChange(); err != nil {
		return store.Appended{}, err
	}
	b.SetBaseOffset(h.logEnd)
	b.SetLeaderEpoch(h.epoch)
	b = slices.Clone(b)
	h.batches = append(h.batches, b)
	h.logEnd = b.LastOffset() + 1
	h.size += int64(len(b))
	h.epochs = store.AddEpoch(h.epochs, h.epoch, b.BaseOffset())
	return store.Appended{BaseOffset: b.BaseOffset(), LastOffset: b.LastOffset()}, nil
}

// Flush implements store.Log. There is nothing that a loss of power would
// leave.
func (h *handle) Flush(done func(error)) {
	h.mu.RLock()
	closed := h.closed
	h.mu.RUnlock()
	if closed {
		done(store.ErrClosed)
		return
	}
	done(nil)
}

// Read implements store.Log.
func (l *log) Read(_ context.Context, req store.ReadRequest) (store.Records, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.closed {
		return store.Records{}, store.ErrClosed
	}
	if req.Offset < l.logStart || req.Offset > l.logEnd {
		return store.Records{}, store.ErrOffsetOutOfRange
	}
	first := l.find(req.Offset)
	n, last := 0, first
	for ; last < len(l.batches); last++ {
		b := l.batches[last]
		if b.LastOffset() >= req.NextOffset || n+len(b) > req.MaxBytes && (last > first || !req.MinOne) {
			break
		}
		n += len(b)
	}
	switch last - first {
	case 0:
		return store.Records{}, nil
	case 1:
		return store.BytesRecords(l.batches[first]), nil
	}
	out := make([]byte, 0, n)
	for _, b := range l.batches[first:last] {
		out = append(out, b...)
	}
	return store.BytesRecords(out), nil
}

// find returns the index of the first batch that ends at or after offset.
func (l *log) find(offset int64) int {
	return sort.Search(len(l.batches), func(i int) bool { return l.batches[i].LastOffset() >= offset })
}

// Bounds implements store.Log.
func (l *log) Bounds() (logStart, logEnd int64) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.logStart, l.logEnd
}

// Size implements store.Log.
func (l *log) Size() int64 {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.size
}

// Epochs implements store.Log.
func (l *log) Epochs() []store.EpochStart {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return slices.Clone(l.epochs)
}

// SetConfig implements store.Log: there are no segments to configure.
func (l *log) SetConfig(store.LogConfig) {}

// Close implements store.Log.
func (h *handle) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.owner == h {
		h.owner = nil
	}
	return nil
}

// Producers implements store.Log.
func (l *log) Producers(context.Context) ([]store.Producer, int64, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.closed {
		return nil, 0, store.ErrClosed
	}
	return l.producers, max(l.producersNext, l.logStart), nil
}

// keepProducers takes the batches that begin below an offset into the producer
// state, since they are about to go.
func (l *log) keepProducers(next int64) error {
	producers := store.NewProducerMap(l.producers)
	for _, b := range l.batches {
		if b.BaseOffset() < l.producersNext || b.BaseOffset() >= next {
			continue
		}
		aborted, err := producers.Note(b, b.MaxTimestamp())
		if err != nil {
			return err
		}
		if aborted != nil {
			l.aborted.Add(*aborted) // Its owner may be about to tell of it.
		}
		l.producersNext = b.LastOffset() + 1
	}
	l.producers = producers.List()
	return nil
}

// SaveProducers implements store.Log.
func (h *handle) SaveProducers(_ context.Context, producers []store.Producer, nextOffset int64) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.mayChange(); err != nil {
		return err
	}
	h.producers, h.producersNext = slices.Clone(producers), nextOffset
	return nil
}
