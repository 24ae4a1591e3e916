package mem

import (
	"context"
	"slices"

	"muster/internal/record"
	"muster/internal/store"
)

// Trim implements store.Log.
func (h *handle) Trim(_ context.Context, newStart int64) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.mayChange(); err != nil {
		return err
	}
	if newStart > h.logEnd {
		return store.ErrOffsetOutOfRange
	}
	return h.trim(newStart)
}

func (l *log) trim(newStart int64) error {
	if newStart <= l.logStart {
		return nil
	}
	if err := l.keepProducers(newStart); err != nil {
		return err
	}
	l.aborted.Trim(newStart)
	l.logStart = newStart
	n := l.find(newStart)
	for _, b := range l.batches[:n] {
		l.size -= int64(len(b))
	}
	l.batches = slices.Clone(l.batches[n:])
	l.epochs = store.TrimEpochs(l.epochs, newStart)
	return nil
}

// Retain implements store.Log. It drops whole batches.
func (h *handle) Retain(_ context.Context, r store.Retention) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.mayChange(); err != nil {
		return err
	}
	size, newStart := h.size, h.logStart
	for _, b := range h.batches {
		old := r.MaxAge >= 0 && b.MaxTimestamp() >= 0 && r.Now.UnixMilli()-b.MaxTimestamp() > r.MaxAge.Milliseconds()
		large := r.MaxBytes >= 0 && size-int64(len(b)) >= r.MaxBytes
		if b.LastOffset() >= r.NextOffset || !old && !large {
			break
		}
		size -= int64(len(b))
		newStart = b.LastOffset() + 1
	}
	return h.trim(newStart)
}

// Compact implements store.Log.
func (h *handle) Compact(_ context.Context, c store.Compaction) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.mayChange(); err != nil {
		return err
	}
	pass := store.NewCompactionPass(c, h.cleaned)
	pass.Skip(h.aborted.Find(h.logStart, c.NextOffset))
	end, dirty, oldest := 0, int64(0), int64(record.NoTimestamp)
	for ; end < len(h.batches) && !pass.Full(); end++ {
		b := h.batches[end]
		if b.LastOffset() >= c.NextOffset || c.Young(b.MaxTimestamp()) {
			break
		}
		if b.LastOffset() < h.cleaned.NextOffset() {
			continue
		}
		if dirty == 0 {
			oldest = b.MaxTimestamp()
		}
		dirty += int64(len(b))
		if err := pass.Note(b); err != nil {
			return err
		}
	}
	if !c.Worth(dirty, h.size, oldest) {
		return nil
	}
	next := h.batches[end-1].LastOffset() + 1
	if err := h.keepProducers(next); err != nil {
		return err
	}
	pass.Protect(h.producers...)
	h.aborted.Remove(pass.Expired)
	var kept []record.Batch
	for _, b := range h.batches[:end] {
		b, err := pass.Filter(b)
		if err != nil {
			return err
		}
		if b != nil {
			kept = append(kept, b)
		}
	}
	h.cleaned = h.cleaned.After(next, c)
	h.batches = append(kept, h.batches[end:]...)
	h.size = 0
	for _, b := range h.batches {
		h.size += int64(len(b))
	}
	return nil
}
