package broker

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"

	"muster/internal/store"
)

// quietly leaves out of the log what only follows from a Redis that is away, which is said
// once: that logs fail, leases are not renewed and journals not written. It counts them.
type quietly struct {
	slog.Handler
	away *atomic.Pointer[redisAway]
	out  *atomic.Int64
}

// Handle implements slog.Handler.
func (q quietly) Handle(ctx context.Context, r slog.Record) error {
	if q.away.Load() != nil && r.Level >= slog.LevelWarn && isUnavailable(r) {
		q.out.Add(1)
		return nil
	}
	return q.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (q quietly) WithAttrs(attrs []slog.Attr) slog.Handler {
	q.Handler = q.Handler.WithAttrs(attrs)
	return q
}

// WithGroup implements slog.Handler.
func (q quietly) WithGroup(name string) slog.Handler {
	q.Handler = q.Handler.WithGroup(name)
	return q
}

// isUnavailable says whether a line is about an error of a store that cannot be reached.
func isUnavailable(r slog.Record) (found bool) {
	r.Attrs(func(a slog.Attr) bool {
		err, ok := a.Value.Any().(error)
		found = ok && (errors.Is(err, store.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded))
		return !found
	})
	return found
}
