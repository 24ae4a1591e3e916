package redis

import (
	"context"
	"strconv"

	"muster/internal/store"
)

// Trim implements store.Log.
func (l *log) Trim(ctx context.Context, newStart int64) error {
	l.maintain.Lock()
	defer l.maintain.Unlock()
	if _, err := l.own(ctx, "trim", checkScript); err != nil {
		return err
	}
	start, next := l.Bounds()
	if newStart > next {
		return store.ErrOffsetOutOfRange
	}
	if newStart <= start {
		return nil
	}
	var bytes int64
	if l.layout == store.LayoutLog {
		// Batches differ in size, so that an estimate would be a bad one.
		from, to := l.span(0, newStart)
		err := l.scan(ctx, from, to, func(it item) bool { bytes += it.size; return true })
		if err != nil {
			return err
		}
	}
	return l.trimTo(ctx, newStart, bytes)
}

// trimTo moves the log start offset, and then removes what is below it. In the
// log layout it is told how many bytes that is.
func (l *log) trimTo(ctx context.Context, newStart, bytes int64) error {
	if err := l.writeStart(ctx, newStart); err != nil {
		return err
	}
	first := l.id(newStart)
	if l.layout == store.LayoutLog {
		first = entryID{ms: uint64(newStart) + 1}
	}
	for mode, none := "~", ""; ; {
		told := none
		switch {
		case l.layout == store.LayoutStream:
		case mode == "=":
			told = decimal(bytes)
		default:
			told = "0"
		}
		r, err := l.own(ctx, "trim", trimScript, first.String(), mode, told)
		if err != nil {
			return err
		}
		gone, freed := r[0].int(), int64(0)
		if len(r) > 1 {
			freed, _ = strconv.ParseInt(r[1].text(), 10, 64)
		}
		l.shrink(freed, gone)
		if mode == "=" {
			return l.trimAborted(ctx)
		}
		if gone == 0 {
			mode = "="
		}
	}
}

// shrink takes note that entries are gone.
func (l *log) shrink(bytes, entries int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tail.size = max(l.tail.size-bytes, 0)
	l.tail.count = max(l.tail.count-entries, 0)
}

// writeStart writes a new log start offset into the meta hash, and the epochs
// that remain. The sender writes epochs too, and must not do so at this moment.
func (l *log) writeStart(ctx context.Context, newStart int64) error {
	l.claim()
	defer l.release()
	l.mu.Lock()
	epochs := store.TrimEpochs(l.tail.epochs, newStart)
	l.mu.Unlock()
	if _, err := l.own(ctx, "trim", setScript, "start", l.position(newStart), "epochs", formatEpochs(epochs)); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.start, l.tail.epochs = max(l.start, newStart), epochs
	return nil
}
