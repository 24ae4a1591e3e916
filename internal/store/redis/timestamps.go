package redis

import (
	"context"
	"errors"
	"fmt"
	"math"

	"muster/internal/record"
	"muster/internal/store"
)

// OffsetForTimestamp implements store.Log.
func (l *log) OffsetForTimestamp(ctx context.Context, ts int64) (store.TimestampOffset, bool, error) {
	if err := l.mayRead(); err != nil {
		return store.TimestampOffset{}, false, err
	}
	return l.numbered.offsetForTimestamp(ctx, ts)
}

// MaxTimestamp implements store.Log.
func (l *log) MaxTimestamp(ctx context.Context) (store.TimestampOffset, bool, error) {
	none := store.TimestampOffset{Timestamp: record.NoTimestamp}
	if err := l.mayRead(); err != nil {
		return none, false, err
	}
	return l.numbered.maxTimestamp(ctx)
}

// offsetForTimestamp relies on this: no record is further ahead of
// its id than the log remembers, so that the search begins where the id says.
// Records with a timestamp field that others wrote are believed to keep to
// that.
func (l recordLog) offsetForTimestamp(ctx context.Context, ts int64) (hit store.TimestampOffset, found bool, err error) {
	l.mu.Lock()
	start, next, epochs, ahead := l.start, l.tail.next, l.tail.epochs, l.tail.ahead
	l.mu.Unlock()
	from, to := l.idsOf(start, next)
	if ts > ahead {
		if first := (entryID{ms: uint64(ts - ahead)}); from.less(first) {
			from = first
		}
	}
	err = l.scan(ctx, from, to, func(it item) bool {
		if found = it.timestamp >= ts; found {
			hit = store.TimestampOffset{Offset: it.base, Timestamp: it.timestamp, LeaderEpoch: epochAt(epochs, it.base)}
		}
		return !found
	})
	return hit, found, err
}

// maxTimestamp searches from the end on, until the ids are too old for a
// timestamp that is as large as the best.
func (l recordLog) maxTimestamp(ctx context.Context) (store.TimestampOffset, bool, error) {
	l.mu.Lock()
	start, next, epochs, ahead := l.start, l.tail.next, l.tail.epochs, l.tail.ahead
	l.mu.Unlock()
	best := store.TimestampOffset{Timestamp: record.NoTimestamp}
	from, to := l.idsOf(start, next)
	err := l.scanBack(ctx, from, to, func(it item) bool {
		if it.timestamp >= best.Timestamp && it.timestamp > record.NoTimestamp {
			best = store.TimestampOffset{Offset: it.base, Timestamp: it.timestamp, LeaderEpoch: epochAt(epochs, it.base)}
		}
		return it.id.ms > math.MaxInt64/2 || int64(it.id.ms)+ahead >= best.Timestamp
	})
	return best, best.Timestamp > record.NoTimestamp, err
}

// offsetForTimestamp searches first for the batch at which the
// largest timestamp so far reaches ts, and from there on batch by batch, since
// the one that had it may have been trimmed or compacted away.
func (l batchLog) offsetForTimestamp(ctx context.Context, ts int64) (store.TimestampOffset, bool, error) {
	var none store.TimestampOffset
	start, next := l.Bounds()
	from, to := l.idsOf(start, next)
	if to.less(from) {
		return none, false, nil
	}
	args := []string{decimal(int64(from.ms)), decimal(int64(to.ms)), decimal(ts)}
	at, err := l.store.do(ctx, l.store.eval(searchScript, []string{l.keys.stream}, args)).AsInt64()
	if err != nil {
		return none, false, attempt("search "+l.keys.stream, err)
	}
	for from = (entryID{ms: uint64(at)}); ; {
		var batch *item
		err := l.scan(ctx, from, to, func(it item) bool {
			if it.timestamp >= ts && !it.empty {
				batch = &it
			}
			return batch == nil
		})
		if err != nil || batch == nil {
			return none, false, err
		}
		hit, found, err := l.searchBatch(ctx, batch.id, start, ts)
		if found || err != nil {
			return hit, found, err
		}
		from = batch.id.after()
	}
}

var errFound = errors.New("found")

// searchBatch finds the first record of a batch with a timestamp of at least
// ts. A batch that has just been trimmed has none.
func (l batchLog) searchBatch(ctx context.Context, id entryID, start, ts int64) (hit store.TimestampOffset, found bool, err error) {
	entries, err := l.entriesBetween(ctx, id, id, 1)
	if err != nil || len(entries) == 0 {
		return hit, false, err
	}
	s, err := decodeBatch(&entries[0])
	if err != nil {
		return hit, false, fmt.Errorf("search %s: %w", l.keys.stream, err)
	}
	err = s.batch.Scan(func(r record.Meta) error {
		if r.Offset < start || r.Timestamp < ts {
			return nil
		}
		hit = store.TimestampOffset{Offset: r.Offset, Timestamp: r.Timestamp, LeaderEpoch: s.batch.LeaderEpoch()}
		return errFound
	})
	switch {
	case errors.Is(err, errFound):
		return hit, true, nil
	case errors.Is(err, record.ErrCorrupt):
		// A batch that cannot be unpacked counts as a whole: its clients will have
		// to cope with it too.
		return store.TimestampOffset{Offset: max(s.batch.BaseOffset(), start), Timestamp: s.batch.MaxTimestamp(), LeaderEpoch: s.batch.LeaderEpoch()}, true, nil
	}
	return hit, false, err
}

// maxTimestamp searches for the largest timestamp ever appended. If the record
// that had it is gone, all headers are looked at.
func (l batchLog) maxTimestamp(ctx context.Context) (store.TimestampOffset, bool, error) {
	none := store.TimestampOffset{Timestamp: record.NoTimestamp}
	l.mu.Lock()
	top, start, next := l.tail.maxTimestamp, l.start, l.tail.next
	l.mu.Unlock()
	if top == record.NoTimestamp {
		return none, false, nil
	}
	hit, found, err := l.offsetForTimestamp(ctx, top)
	if err != nil || found {
		return hit, found, err
	}
	// The header of a batch that reaches below the log start may promise too
	// much, so that its records are looked at.
	best, cut := item{timestamp: record.NoTimestamp}, item{timestamp: record.NoTimestamp}
	from, to := l.idsOf(start, next)
	err = l.scan(ctx, from, to, func(it item) bool {
		switch {
		case it.empty:
		case it.base < start:
			cut = it
		case it.timestamp > best.timestamp:
			best = it
		}
		return true
	})
	if err != nil {
		return none, false, err
	}
	hit = none
	for _, it := range []item{cut, best} {
		for it.timestamp > hit.Timestamp {
			better, found, err := l.searchBatch(ctx, it.id, start, hit.Timestamp+1)
			if err != nil {
				return none, false, err
			}
			if !found {
				break
			}
			hit = better
		}
	}
	return hit, hit.Timestamp > record.NoTimestamp, nil
}
