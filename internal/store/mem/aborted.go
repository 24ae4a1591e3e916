package mem

import (
	"cmp"
	"context"
	"slices"

	"muster/internal/store"
)

// Aborted implements store.Log.
func (l *log) Aborted(_ context.Context, from, next int64) ([]store.Aborted, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.closed {
		return nil, store.ErrClosed
	}
	var out []store.Aborted
	for _, a := range l.aborted {
		if a.FirstOffset < next && a.LastOffset >= from {
			out = append(out, a)
		}
	}
	slices.SortFunc(out, func(a, b store.Aborted) int { return cmp.Compare(a.FirstOffset, b.FirstOffset) })
	return out, nil
}

// NoteAborted implements store.Log.
func (h *handle) NoteAborted(_ context.Context, aborted []store.Aborted) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.mayChange(); err != nil {
		return err
	}
	for _, a := range aborted {
		if n := len(h.aborted); n == 0 || a.LastOffset > h.aborted[n-1].LastOffset {
			h.aborted = append(h.aborted, a)
		}
	}
	return nil
}
