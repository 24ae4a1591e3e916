package redis

import (
	"context"
	"slices"
	"time"

	"muster/internal/record"
	"muster/internal/store"
)

// maxCompactionKeys bounds the memory of one pass over a log. If a log has
// more different keys, the rest waits for the next pass.
const maxCompactionKeys = 2_000_000

// cleaned is what is kept of the last compaction.
type cleaned struct {
	to    int64 // the offset up to which it went
	bytes int64 // what it left there
}

// Compact implements store.Log. In the stream layout superseded records are
// deleted; in the log layout batches are written anew without them.
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
	p := &pass{cleanedTo: l.cleaned.to, young: youngerThan(c), horizon: c.Now.Add(-c.DeleteRetention).UnixMilli(), latest: map[string]int64{}}
	if l.layout == store.LayoutLog {
		return l.compactBatches(ctx, p, c.NextOffset)
	}
	return l.compactEntries(ctx, p, c.NextOffset)
}

// youngerThan returns the timestamp above which records are left alone.
func youngerThan(c store.Compaction) int64 {
	if c.MinLag <= 0 {
		return maxTimestamp
	}
	return c.Now.Add(-c.MinLag).UnixMilli()
}

// worthCompacting applies min.cleanable.dirty.ratio and max.compaction.lag.ms.
func (l *log) worthCompacting(ctx context.Context, c store.Compaction) (bool, error) {
	start, next := l.Bounds()
	dirtyFrom := max(start, l.cleaned.to)
	if dirtyFrom >= min(next, c.NextOffset) {
		return false, nil
	}
	total := l.Size()
	if dirty := total - min(l.cleaned.bytes, total); float64(dirty) >= c.MinDirtyRatio*float64(total) {
		return true, nil
	}
	if c.MaxLag <= 0 {
		return false, nil
	}
	late := false
	from, to := l.span(dirtyFrom, min(next, c.NextOffset))
	err := l.scan(ctx, from, to, func(it item) bool {
		late = it.timestamp < c.Now.Add(-c.MaxLag).UnixMilli()
		return false
	})
	return late, err
}

// pass is one compaction of a log.
type pass struct {
	latest    map[string]int64 // the newest offset of every key not yet compacted
	cleanedTo int64            // tombstones below have been seen by an earlier pass
	horizon   int64            // tombstones older than this may go
	young     int64            // records younger than this stay
}

// keep decides about one record. Records without key cannot be superseded and
// have no place in a compacted log.
func (p *pass) keep(key string, hasKey, tombstone bool, offset, timestamp int64) bool {
	if !hasKey {
		return false
	}
	if newest, ok := p.latest[key]; ok && newest > offset {
		return false
	}
	return !tombstone || offset >= p.cleanedTo || timestamp > p.horizon
}

// filter returns the batch as it shall remain, nil if nothing of it does.
func (p *pass) filter(b record.Batch) (record.Batch, error) {
	if b.Control() {
		return b, nil
	}
	return b.Filter(func(k *record.Keyed) bool {
		return p.keep(string(k.Key), k.HasKey, k.Tombstone, k.Offset, k.Timestamp)
	})
}

// note takes the keys of a batch into the map.
func (p *pass) note(b record.Batch) error {
	if b.Control() {
		return nil
	}
	return b.ScanKeys(func(k *record.Keyed) error {
		if k.HasKey {
			p.latest[string(k.Key)] = k.Offset
		}
		return nil
	})
}

// sharedDeleteRetention is how long tombstones stay in a shared log: a broker
// that was away for longer reads it from the start.
const sharedDeleteRetention = 24 * time.Hour

// compactBatches compacts a log of the log layout up to an offset.
func (l *log) compactBatches(ctx context.Context, p *pass, nextOffset int64) error {
	start, next := l.Bounds()
	w := &rewriter{store: l.store, keys: l.keys, dst: l.keys.rewrite + ":" + l.owner, average: l.average()}
	limit, err := w.plan(ctx, p, start, min(next, nextOffset))
	if err != nil {
		return err
	}
	if w.started {
		return l.swap(ctx, w, limit)
	}
	for part := range slices.Chunk(w.dropped, scanEntries) {
		if err := l.remove(ctx, part); err != nil {
			return err
		}
	}
	return l.writeCleaned(ctx, cleaned{to: limit, bytes: w.kept})
}

// average is the mean size of an entry.
func (l *log) average() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tail.size/max(l.tail.count, 1) + 1
}

// swap puts the rewritten stream in the place of the log. Meanwhile nothing is
// appended.
func (l *log) swap(ctx context.Context, w *rewriter, limit int64) error {
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
	done := cleaned{to: limit, bytes: w.kept}
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
	_, err := l.own(ctx, "compact", setScript, "cleaned", decimal(c.to), "clean", decimal(c.bytes))
	if err == nil {
		l.cleaned = c
	}
	return err
}
