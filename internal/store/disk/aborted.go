package disk

import (
	"context"

	"muster/internal/store"
)

// The aborted transactions are kept in memory, and on disk in the snapshots of
// the producers: what a snapshot does not cover is found again by reading the
// batches that came after it, which whoever opens the log does anyway for its
// producers. So the two cannot disagree, whatever a crash leaves.

// Aborted implements store.Log.
func (l *log) Aborted(_ context.Context, from, next int64) ([]store.Aborted, error) {
	if err := l.needAborted(); err != nil {
		return nil, err
	}
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.closed {
		return nil, store.ErrClosed
	}
	return l.aborted.Find(from, next), nil
}

// NoteAborted implements store.Log.
func (h *handle) NoteAborted(_ context.Context, aborted []store.Aborted) error {
	l := h.log
	l.appendMu.Lock()
	defer l.appendMu.Unlock()
	if err := h.mayChange(); err != nil {
		return err
	}
	return l.addAborted(aborted)
}

// needAborted reads what the last snapshot holds, if no one has yet.
func (l *log) needAborted() error {
	if l.abortedLoaded.Load() {
		return nil
	}
	l.appendMu.Lock()
	defer l.appendMu.Unlock()
	if l.shutDown || l.replaced {
		return store.ErrClosed
	}
	return l.loadAborted()
}

// loadAborted does so. appendMu is held.
func (l *log) loadAborted() error {
	if l.abortedLoaded.Load() {
		return nil
	}
	if _, _, err := l.lastSnapshot(); err != nil {
		return l.storageError("load aborted transactions", err)
	}
	return nil
}

// takeAborted makes the aborted transactions of a snapshot those of the log, if it
// is the first that was read. appendMu is held.
func (l *log) takeAborted(list []store.Aborted) {
	if l.abortedLoaded.Load() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.aborted = store.AbortedList{}
	l.aborted.Add(list...)
	l.aborted.Trim(l.logStart)
	l.abortedLoaded.Store(true)
}

// addAborted takes in more. appendMu is held.
func (l *log) addAborted(list []store.Aborted) error {
	if err := l.loadAborted(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.aborted.Add(list...)
	return nil
}

// abortedBelow returns those that a snapshot as of an offset covers. appendMu is
// held.
func (l *log) abortedBelow(next int64) ([]store.Aborted, error) {
	if err := l.loadAborted(); err != nil {
		return nil, err
	}
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.aborted.Below(next), nil
}

// expireAborted forgets the entries whose markers compaction may remove, and says
// whether there were any. appendMu is held.
func (l *log) expireAborted(expired func(store.Aborted) bool) (bool, error) {
	if err := l.loadAborted(); err != nil {
		return false, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.aborted.Remove(expired)) > 0, nil
}
