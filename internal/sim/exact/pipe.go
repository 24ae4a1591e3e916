package exact

import (
	"bytes"
	"context"
	"time"

	"muster/internal/record"
	"muster/internal/store"
)

// pipe is a log far away: appends are begun, arrive in order, and their outcome
// comes later still. What is said to have failed may be stored all the same, at
// once or later, as long as the log was not opened again.
type pipe struct {
	*handle
	arrives, ends time.Duration // of the last append begun
}

var _ store.Pipelined = (*pipe)(nil)

// Begin implements store.Pipelined.
func (h *pipe) Begin(ctx context.Context, batch []byte, done func(store.Appended, error)) {
	w := h.log.w
	b, start := bytes.Clone(batch), w.model.sending
	h.arrives = max(h.arrives, w.Now+w.appendDelay())
	w.At(h.arrives, func() {
		at, err := h.arrive(ctx, b, start)
		h.ends = max(h.ends, w.Now)
		if w.Chance(w.faults().appendSlow) {
			w.Count("append answered late")
			h.ends += w.Between(0, 500*time.Millisecond)
		}
		w.At(h.ends, func() {
			h.b.do(h.life, func() {
				w.Tracef("%s-%d: append at %d has ended: %v", h.log.tp.Topic, h.log.tp.Partition, at.BaseOffset, err)
				done(at, err)
			})
		})
	})
}

// arrive is when the store gets an append.
func (h *pipe) arrive(ctx context.Context, b []byte, start int64) (at store.Appended, err error) {
	l, w := h.log, h.log.w
	gone := h.b.life != h.life
	switch {
	case h.Failed() || w.store.isAway(l):
		h.failed = true
		return at, store.ErrFailed
	case !h.owns() && h.b.life == h.life:
		w.Count("append fenced")
		return at, store.ErrFenced
	case h.failed, gone && !h.owns(), gone && w.Rand.IntN(2) == 0:
		return at, store.ErrFailed
	case !w.Chance(w.faults().appendFails):
		return h.store(ctx, b, start)
	}
	w.Count("append failed")
	w.Tracef("%s-%d: an append fails", l.tp.Topic, l.tp.Partition)
	h.failed = true
	switch w.Rand.IntN(3) {
	case 0:
		w.Count("append failed but stored")
		_, _ = h.store(ctx, b, start)
	case 1:
		w.After(w.Between(0, 100*time.Millisecond), func() {
			if h.owns() && l.owner == h.handle && !h.Failed() {
				w.Count("append stored after it had failed")
				_, _ = h.store(ctx, b, start)
			}
		})
	}
	return at, store.ErrUnavailable
}

func (h *pipe) store(ctx context.Context, b []byte, start int64) (store.Appended, error) {
	at, err := h.Log.Append(ctx, b)
	if err == nil {
		h.log.keep(b, start)
		h.log.sync(h.log.end())
		h.remember(ctx, b)
	}
	return at, err
}

// remember keeps the producers and the aborted transactions with each append, as
// Redis does.
func (h *pipe) remember(ctx context.Context, b record.Batch) {
	l := h.log
	if l.producers == nil {
		l.producers = store.NewProducerMap(nil)
	}
	aborted, err := l.producers.Note(b, b.MaxTimestamp())
	if err == nil && aborted != nil {
		err = h.Log.NoteAborted(ctx, []store.Aborted{*aborted})
	}
	if err == nil {
		err = h.Log.SaveProducers(ctx, l.producers.List(), l.end())
	}
	if err != nil {
		l.w.Violated("%v: producers cannot be kept: %v", l.tp, err)
	}
}

// Flush implements store.Log: there are copies enough, after a moment.
func (h *pipe) Flush(done func(error)) {
	w := h.log.w
	if w.store.atOnce {
		done(nil)
		return
	}
	w.After(50*time.Microsecond, func() {
		h.b.do(h.life, func() {
			if w.Chance(w.faults().appendFails) {
				w.Count("not replicated")
				w.Tracef("%s-%d: not replicated", h.log.tp.Topic, h.log.tp.Partition)
				done(store.ErrNotReplicated)
				return
			}
			done(nil)
		})
	})
}

// NoteAborted implements store.Log: they are known.
func (h *pipe) NoteAborted(context.Context, []store.Aborted) error { return nil }

// SaveProducers implements store.Log: they are known.
func (h *pipe) SaveProducers(context.Context, []store.Producer, int64) error { return nil }
