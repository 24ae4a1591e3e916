package redis

import (
	"context"

	"muster/internal/store"
)

// Transactional implements store.Refresher: entries have no place for markers.
func (recordLog) Transactional() bool { return false }

// Refresh implements store.Refresher.
//
// While the server's clock is behind the last id, because it was set back or
// this broker appended very much at once, the server gives ids with the same
// time and a growing sequence to others who append. Before the sequence becomes
// too large for an offset, Refresh moves the stream on to the next millisecond.
func (l recordLog) Refresh(ctx context.Context) (int64, error) {
	if err := l.mayRead(); err != nil {
		return 0, err
	}
	args := []string{l.owner, decimal(int64(l.perMilli() / 2))}
	text, err := l.store.do(ctx, l.store.eval(lastScript, []string{l.keys.stream, l.keys.meta}, args)).ToString()
	if err != nil {
		return 0, attempt("look at "+l.keys.stream, err)
	}
	if text == "" {
		return 0, store.ErrClosed // Deleted.
	}
	last, err := parseID(text)
	if err != nil {
		return 0, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if last != (entryID{}) {
		l.tail.next = max(l.tail.next, l.atOrAfter(last.after()))
	}
	return l.tail.next, nil
}
