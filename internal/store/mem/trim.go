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
	h.trim(newStart)
	return nil
}

func (l *log) trim(newStart int64) {
	if newStart <= l.logStart {
		return
	}
	l.logStart = newStart
	n := l.find(newStart)
	for _, b := range l.batches[:n] {
		l.size -= int64(len(b))
	}
	l.batches = slices.Clone(l.batches[n:])
	for len(l.epochs) > 1 && l.epochs[1].Start <= newStart {
		l.epochs = l.epochs[1:]
	}
	if len(l.epochs) > 0 && l.epochs[0].Start < newStart {
		l.epochs = slices.Clone(l.epochs)
		l.epochs[0].Start = newStart
	}
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
	h.trim(newStart)
	return nil
}

// Compact implements store.Log.
func (h *handle) Compact(_ context.Context, c store.Compaction) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.mayChange(); err != nil {
		return err
	}
	end := 0
	for end < len(h.batches) {
		b := h.batches[end]
		recent := c.MinLag > 0 && b.MaxTimestamp() > c.Now.Add(-c.MinLag).UnixMilli()
		if b.LastOffset() >= c.NextOffset || recent {
			break
		}
		end++
	}
	latest := map[string]int64{}
	for _, b := range h.batches[:end] {
		if b.Control() {
			continue
		}
		err := b.Each(func(r *record.Record) error {
			if r.Key != nil {
				latest[string(r.Key)] = r.Offset
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	kept, err := h.filter(h.batches[:end], latest, c)
	if err != nil {
		return err
	}
	if end > 0 {
		h.cleanedTo = h.batches[end-1].LastOffset() + 1
	}
	h.batches = append(kept, h.batches[end:]...)
	h.size = 0
	for _, b := range h.batches {
		h.size += int64(len(b))
	}
	return nil
}

func (l *log) filter(batches []record.Batch, latest map[string]int64, c store.Compaction) ([]record.Batch, error) {
	horizon := c.Now.Add(-c.DeleteRetention).UnixMilli()
	var out []record.Batch
	for _, b := range batches {
		var kept []record.Record
		err := b.Each(func(r *record.Record) error {
			stale := r.Key == nil || latest[string(r.Key)] > r.Offset
			if expired := r.Tombstone() && r.Offset < l.cleanedTo && r.Timestamp <= horizon; !stale && !expired {
				kept = append(kept, *r)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		if b.Control() || len(kept) == int(b.Count()) {
			out = append(out, b)
			continue
		}
		if len(kept) == 0 {
			continue
		}
		nb, err := record.Build(record.TemplateOf(b), kept)
		if err != nil {
			return nil, err
		}
		out = append(out, nb)
	}
	return out, nil
}
