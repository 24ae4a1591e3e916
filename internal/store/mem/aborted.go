package mem

import (
	"context"

	"muster/internal/store"
)

// Aborted implements store.Log.
func (l *log) Aborted(_ context.Context, from, next int64) ([]store.Aborted, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.closed {
		return nil, store.ErrClosed
	}
	return l.aborted.Find(from, next), nil
}

// NoteAborted implements store.Log.
func (h *handle) NoteAborted(_ context.Context, aborted []store.Aborted) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.mayChange(); err != nil {
		return err
	}
	h.aborted.Add(aborted...)
	return nil
}
