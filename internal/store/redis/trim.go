package redis

import (
	"context"

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
	return l.numbered.trim(ctx, newStart)
}

// trimWhile moves the start of the log past the entries from an offset on and
// below another, as long as a function of them says yes. What it has looked at goes
// before it looks at more: where a store is full, and each producer that fails has the
// log opened again, no one gets to the end of a long one, and it must become shorter.
func (l *log) trimWhile(ctx context.Context, offset, next int64, goes func(item) bool) error {
	start, _ := l.Bounds()
	from, to := l.idsOf(offset, next)
	for more := true; more && !to.less(from); {
		part, err := l.scanPart(ctx, from, to, false)
		if err != nil {
			return err
		}
		more, from = part.more, part.last.after()
		newStart, bytes := start, int64(0)
		for _, it := range part.items {
			if !goes(it) {
				more = false
				break
			}
			newStart, bytes = max(newStart, it.last+1), bytes+it.size
		}
		if bytes == 0 {
			continue
		}
		if err := l.numbered.trimTo(ctx, newStart, bytes); err != nil {
			return err
		}
		start = newStart
	}
	return nil
}

// shrink takes note that entries are gone.
func (l *log) shrink(bytes, entries int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tail.size = max(l.tail.size-bytes, 0)
	l.tail.count = max(l.tail.count-entries, 0)
}

// writeStart writes a new log start offset into the meta hash, and the epochs
// that remain.
func (l *log) writeStart(ctx context.Context, newStart int64) error {
	_, err := l.moveTo(ctx, startScript, newStart)
	return err
}

// moveTo runs a script that is told a new log start offset and the epochs that
// remain, and returns what it does. The sender writes epochs too, and must not do so
// at this moment.
func (l *log) moveTo(ctx context.Context, script string, newStart int64, args ...string) (int64, error) {
	l.claim()
	defer l.release()
	l.mu.Lock()
	epochs := store.TrimEpochs(l.tail.epochs, newStart)
	l.mu.Unlock()
	r, err := l.own(ctx, "trim", script, append([]string{l.layout.position(newStart), formatEpochs(epochs)}, args...)...)
	if err != nil {
		return 0, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.start, l.tail.epochs = max(l.start, newStart), epochs
	return r[0].int(), nil
}
