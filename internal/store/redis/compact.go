package redis

import (
	"context"
	"slices"
	"time"

	"muster/internal/record"
	"muster/internal/store"
)

// cleaned is what is kept of compaction: the passes so far, and what the last one
// left.
type cleaned struct {
	to     int64         // the offset up to which it went, as the meta hash has it
	passes store.Cleaned // the same, and when
	bytes  int64
}

// loadCleaned reads it from the meta hash. If the passes are not there, or not
// those that went so far, all of it counts as compacted now.
func loadCleaned(meta map[string]string, now int64) (c cleaned, err error) {
	if c.to, err = number(meta, "cleaned"); err != nil {
		return c, err
	}
	if c.bytes, err = number(meta, "clean"); err != nil {
		return c, err
	}
	if c.passes, err = store.ParseCleaned(meta["passes"]); err != nil || c.passes.NextOffset() != c.to {
		c.passes = store.Cleaned(nil)
		if c.to > 0 {
			c.passes = store.Cleaned{{NextOffset: c.to, At: now}}
		}
	}
	return c, nil
}

// after returns it after a pass up to an offset that left so many bytes below.
func (c cleaned) after(to, bytes int64, pass store.Compaction) cleaned {
	passes := c.passes.After(to, pass)
	return cleaned{to: passes.NextOffset(), passes: passes, bytes: bytes}
}

// Compact implements store.Log.
func (l *log) Compact(ctx context.Context, c store.Compaction) error {
	l.maintain.Lock()
	defer l.maintain.Unlock()
	if _, err := l.own(ctx, "compact", checkScript); err != nil {
		return err
	}
	if err := l.forgetSometimes(ctx); err != nil {
		return err
	}
	worth, err := l.worthCompacting(ctx, c)
	if err != nil || !worth {
		return err
	}
	return l.numbered.compact(ctx, c)
}

// worthCompacting looks at the records that have not been compacted. The size of
// a stream is an estimate, so that it may seem to have none.
func (l *log) worthCompacting(ctx context.Context, c store.Compaction) (bool, error) {
	start, next := l.Bounds()
	dirtyFrom := max(start, l.cleaned.to)
	if dirtyFrom >= min(next, c.NextOffset) {
		return false, nil
	}
	total := l.Size()
	if dirty := total - min(l.cleaned.bytes, total); c.Worth(max(dirty, 1), total, record.NoTimestamp) {
		return true, nil
	}
	if c.MaxLag <= 0 {
		return false, nil
	}
	late := false
	from, to := l.idsOf(dirtyFrom, min(next, c.NextOffset))
	err := l.scan(ctx, from, to, func(it item) bool {
		late = c.Late(it.timestamp)
		return false
	})
	return late, err
}

// sharedDeleteRetention is how long tombstones stay in a shared log: a broker
// that was away for longer reads it from the start.
const sharedDeleteRetention = 24 * time.Hour

// compact writes batches anew without superseded records.
func (l batchLog) compact(ctx context.Context, c store.Compaction) error {
	if l.store.now().Sub(l.copying) < copyPause {
		return nil
	}
	// A copy that has what the log has no more would bring it back: aborted records without
	// their range, values without the tombstone after them.
	if err := l.dropCopy(ctx); err != nil {
		return err
	}
	start, next := l.Bounds()
	w := &rewriter{store: l.store, keys: l.keys, dst: l.keys.rewrite + ":" + l.owner, average: l.average()}
	pass := store.NewCompactionPass(c, l.cleaned.passes)
	l.mu.Lock()
	pass.Skip(l.aborted.Find(start, c.NextOffset))
	for _, p := range l.producers {
		pass.Protect(p.Producer)
	}
	l.mu.Unlock()
	// An entry goes before its marker does: no reader may be told of a transaction
	// that never ends.
	if err := l.expireAborted(ctx, pass); err != nil {
		return err
	}
	limit, err := w.plan(ctx, c, pass, l.cleaned, start, min(next, c.NextOffset))
	if err != nil {
		return err
	}
	done := l.cleaned.after(limit, w.kept, c)
	if w.started {
		return l.swap(ctx, w, done)
	}
	for part := range slices.Chunk(w.dropped, scanEntries) {
		if err := l.remove(ctx, part); err != nil {
			return err
		}
	}
	return l.writeCleaned(ctx, done)
}

// average is the mean size of an entry.
func (l *log) average() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tail.size/max(l.tail.count, 1) + 1
}

// swap puts the rewritten stream in the place of the log. Meanwhile nothing is
// appended.
func (l *log) swap(ctx context.Context, w *rewriter, done cleaned) error {
	if err := w.copyRest(ctx); err != nil {
		return err
	}
	l.claim()
	defer l.release()
	if err := l.mayChange(); err != nil {
		return err
	}
	if err := w.copyRest(ctx); err != nil {
		return err
	}
	refused, err := w.swap(ctx, "n", l.token(l.acknowledged()), l.cleaned.to, done)
	if err != nil {
		return err
	}
	if refused != nil {
		if err := l.refusal(*refused); err != nil {
			return err
		}
		return store.ErrFailed
	}
	l.cleaned = done
	l.shrink(w.droppedBytes, w.droppedEntries)
	return nil
}

// remove deletes entries.
func (l *log) remove(ctx context.Context, gone []item) error {
	args := []string{""}
	var bytes int64
	for _, it := range gone {
		bytes += it.size
		args = append(args, it.id.String())
	}
	args[0] = decimal(bytes)
	r, err := l.own(ctx, "compact", deleteScript, args...)
	if err == nil {
		l.shrink(bytes, r[0].int())
	}
	return err
}

// writeCleaned remembers how far compaction went.
func (l *log) writeCleaned(ctx context.Context, c cleaned) error {
	_, err := l.own(ctx, "compact", setScript, "cleaned", decimal(c.to), "clean", decimal(c.bytes), "passes", c.passes.String())
	if err == nil {
		l.cleaned = c
	}
	return err
}
