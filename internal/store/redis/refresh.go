package redis

import (
	"context"

	"muster/internal/store"
)

// Refresh implements store.Refresher.
func (l streamLog) Refresh(ctx context.Context) (int64, error) {
	if err := l.mayRead(); err != nil {
		return 0, err
	}
	what := "look at " + l.keys.stream
	text, err := l.store.do(ctx, l.store.eval(lastScript, []string{l.keys.stream, l.keys.meta}, nil)).ToString()
	if err != nil {
		return 0, attempt(what, err)
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
