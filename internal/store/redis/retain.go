package redis

import (
	"context"

	"muster/internal/store"
)

// Retain implements store.Log. It drops whole batches in the log layout and
// single records in the stream layout.
func (l *log) Retain(ctx context.Context, r store.Retention) error {
	l.maintain.Lock()
	defer l.maintain.Unlock()
	if _, err := l.own(ctx, "retain", checkScript); err != nil {
		return err
	}
	start, next := l.Bounds()
	size, newStart, bytes := l.Size(), start, int64(0)
	from, to := l.span(start, min(r.NextOffset, next))
	err := l.scan(ctx, from, to, func(it item) bool {
		old := r.MaxAge >= 0 && it.timestamp >= 0 && r.Now.UnixMilli()-it.timestamp > r.MaxAge.Milliseconds()
		large := r.MaxBytes >= 0 && size-it.size >= r.MaxBytes
		if it.last >= r.NextOffset || !old && !large {
			return false
		}
		size -= it.size
		bytes += it.size
		newStart = it.last + 1
		return true
	})
	if err != nil || newStart == start {
		return err
	}
	return l.trimTo(ctx, newStart, bytes)
}
