package disk

import (
	"context"
	"errors"

	"muster/internal/record"
	"muster/internal/store"
)

// OffsetForTimestamp implements store.Log.
func (l *log) OffsetForTimestamp(_ context.Context, ts int64) (store.TimestampOffset, bool, error) {
	return again(func() (store.TimestampOffset, bool, error) { return l.offsetForTimestamp(ts) })
}

// MaxTimestamp implements store.Log.
func (l *log) MaxTimestamp(context.Context) (store.TimestampOffset, bool, error) {
	return again(l.maxTimestamp)
}

// again repeats a search whose segments were removed under it.
func again(search func() (store.TimestampOffset, bool, error)) (store.TimestampOffset, bool, error) {
	for {
		hit, ok, err := search()
		if !errors.Is(err, errGone) {
			return hit, ok, err
		}
	}
}

func (l *log) offsetForTimestamp(ts int64) (store.TimestampOffset, bool, error) {
	logStart, views, err := l.snapshot()
	if err != nil {
		return store.TimestampOffset{}, false, err
	}
	for _, v := range views {
		if v.maxTS < ts || v.size == 0 {
			continue
		}
		hit, ok, err := l.searchSegment(v, func(index []indexEntry) int64 { return int64(entryBeforeTimestamp(index, ts).pos) },
			func(h record.Batch) bool { return h.LastOffset() >= logStart && h.MaxTimestamp() >= ts },
			func(r record.Meta) bool { return r.Offset >= logStart && r.Timestamp >= ts })
		if err != nil || ok {
			return hit, ok, err
		}
	}
	return store.TimestampOffset{}, false, nil
}

// maxTimestamp lets headers tell the batch; only that one is unpacked. A batch
// that compaction has emptied may have told too much; then all headers are read.
func (l *log) maxTimestamp() (store.TimestampOffset, bool, error) {
	logStart, views, err := l.snapshot()
	if err != nil {
		return store.TimestampOffset{}, false, err
	}
	hit, ok, err := l.maxOfViews(views, logStart, false)
	if ok || err != nil {
		return hit, ok, err
	}
	return l.maxOfViews(views, logStart, true)
}

// maxOfViews searches segments. Unless it is to be thorough, it believes what is
// known of them in memory.
func (l *log) maxOfViews(views []view, logStart int64, thorough bool) (store.TimestampOffset, bool, error) {
	best, top := view{}, int64(record.NoTimestamp)
	for _, v := range views {
		if v.maxTS <= top || v.size == 0 {
			continue
		}
		ts, err := l.maxInSegment(v, logStart, thorough)
		if err != nil {
			return store.TimestampOffset{}, false, err
		}
		if ts > top {
			best, top = v, ts
		}
	}
	if best.seg == nil {
		return store.TimestampOffset{}, false, nil
	}
	return l.searchSegment(best, func(index []indexEntry) int64 { return int64(entryBeforeTimestamp(index, top).pos) },
		func(h record.Batch) bool { return h.LastOffset() >= logStart && h.MaxTimestamp() >= top },
		func(r record.Meta) bool { return r.Offset >= logStart && r.Timestamp >= top })
}

// maxInSegment returns the largest timestamp at or after logStart.
func (l *log) maxInSegment(v view, logStart int64, thorough bool) (int64, error) {
	if v.seg.base >= logStart && !thorough {
		return v.maxTS, nil
	}
	f, err := l.acquire(v.seg)
	if err != nil {
		return 0, l.storageError("read", err)
	}
	defer l.release(f)
	top := int64(record.NoTimestamp)
	err = eachHeader(f, 0, v.size, func(pos int64, h record.Batch) error {
		if h.LastOffset() < logStart || h.Count() == 0 {
			return nil
		}
		if h.BaseOffset() >= logStart {
			top = max(top, h.MaxTimestamp())
			return nil
		}
		b, err := readBatch(f, pos, h)
		if err != nil {
			return err
		}
		return b.Scan(func(r record.Meta) error {
			if r.Offset >= logStart {
				top = max(top, r.Timestamp)
			}
			return nil
		})
	})
	return top, err
}

// searchSegment returns the first record that wanted accepts, looking only into
// batches whose header promising accepts.
func (l *log) searchSegment(v view, from func([]indexEntry) int64, promising func(record.Batch) bool, wanted func(record.Meta) bool) (hit store.TimestampOffset, ok bool, err error) {
	f, err := l.acquire(v.seg)
	if err != nil {
		return hit, false, l.storageError("read", err)
	}
	defer l.release(f)
	index, err := l.entries(f, v)
	if err != nil {
		return hit, false, err
	}
	err = eachHeader(f, from(index), v.size, func(pos int64, h record.Batch) error {
		if !promising(h) {
			return nil
		}
		b, err := readBatch(f, pos, h)
		if err != nil {
			return err
		}
		hit, ok = firstRecord(b, wanted)
		if ok {
			return errStop
		}
		return nil
	})
	return hit, ok, err
}

// firstRecord finds a record in a batch. A batch that cannot be unpacked
// counts as a whole: its clients will have to cope with it too.
func firstRecord(b record.Batch, wanted func(record.Meta) bool) (hit store.TimestampOffset, ok bool) {
	err := b.Scan(func(r record.Meta) error {
		if !wanted(r) {
			return nil
		}
		hit = store.TimestampOffset{Offset: r.Offset, Timestamp: r.Timestamp, LeaderEpoch: b.LeaderEpoch()}
		ok = true
		return errStop
	})
	if err != nil && !ok {
		return store.TimestampOffset{Offset: b.BaseOffset(), Timestamp: b.MaxTimestamp(), LeaderEpoch: b.LeaderEpoch()}, true
	}
	return hit, ok
}
