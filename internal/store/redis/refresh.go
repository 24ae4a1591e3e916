package redis

import (
	"context"
	"time"

	"muster/internal/store"
)

// Refresh implements store.Refresher.
func (l streamLog) Refresh(ctx context.Context) (int64, error) {
	if err := l.mayRead(); err != nil {
		return 0, err
	}
	last, _, err := l.look(ctx, l.perMilli()/2)
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

// look returns the last id of the stream, and how far it is ahead of the clock. If its
// sequence is large, and it is ahead, the stream moves on to the next millisecond.
func (l *log) look(ctx context.Context, large uint64) (last entryID, ahead time.Duration, err error) {
	args := []string{l.owner, decimal(int64(large))}
	r, err := replies(l.store.do(ctx, l.store.eval(lastScript, []string{l.keys.stream, l.keys.meta}, args)))
	if err != nil {
		return last, 0, attempt("look at "+l.keys.stream, err)
	}
	if len(r) != 3 {
		return last, 0, store.ErrClosed // Deleted.
	}
	last, err = parseID(r[0].text())
	return last, time.Duration(int64(last.ms)-serverMillis(r[1], r[2])) * time.Millisecond, err
}
