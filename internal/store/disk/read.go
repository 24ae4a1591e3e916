package disk

import (
	"context"
	"errors"
	"io"
	"sort"

	"muster/internal/record"
	"muster/internal/store"
)

// view is a segment as a reader sees it: what was complete when it looked.
type view struct {
	seg   *segment
	size  int64
	maxTS int64
	index []indexEntry // of the active segment; nil for a closed one
	next  int64        // offset after the segment's last record
	print uint32
}

// snapshot returns the log start offset and the segments from there on.
func (l *log) snapshot() (logStart int64, views []view, err error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.closed {
		return 0, nil, store.ErrClosed
	}
	for _, s := range l.segments[l.segmentFor(l.logStart):] {
		views = append(views, s.view())
	}
	return l.logStart, views, nil
}

// segmentFor returns the index of the segment that holds offset.
func (l *log) segmentFor(offset int64) int {
	i := sort.Search(len(l.segments), func(i int) bool { return l.segments[i].base > offset })
	return max(i-1, 0)
}

func (s *segment) view() view {
	v := view{seg: s, size: s.sum.size, maxTS: s.sum.maxTS, next: s.sum.next, print: s.sum.print}
	if !s.closed {
		v.index = s.index
	}
	return v
}

// readPlan is what Read finds out under the lock.
type readPlan struct {
	view view
	last bool // the view is the active segment
	none bool // there is nothing to read
}

// plan finds the segment that holds seek, which is the offset that was asked
// for or a later one.
func (l *log) plan(req store.ReadRequest, seek int64) (readPlan, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	switch {
	case l.closed:
		return readPlan{}, store.ErrClosed
	case req.Offset < l.logStart || req.Offset > l.logEnd:
		return readPlan{}, store.ErrOffsetOutOfRange
	case seek >= min(l.logEnd, req.NextOffset):
		return readPlan{none: true}, nil
	}
	i := l.segmentFor(seek)
	return readPlan{view: l.segments[i].view(), last: i == len(l.segments)-1}, nil
}

// Read implements store.Log.
func (l *log) Read(_ context.Context, req store.ReadRequest) (store.Records, error) {
	for seek := req.Offset; ; {
		p, err := l.plan(req, seek)
		if err != nil || p.none {
			return store.Records{}, err
		}
		recs, found, err := l.readSegment(p, req, seek)
		if errors.Is(err, errGone) {
			continue
		}
		if err != nil || found || p.last {
			return recs, err
		}
		// Compaction left nothing at or after the offset in this segment. The
		// next one is found by offset, since segments may be joined meanwhile.
		seek = p.view.next
	}
}

// readSegment reads from one segment. found is false if it has no batch that
// ends at or after the offset.
func (l *log) readSegment(p readPlan, req store.ReadRequest, seek int64) (recs store.Records, found bool, err error) {
	f, err := l.acquire(p.view.seg)
	if err != nil {
		return recs, false, l.storageError("read", err)
	}
	defer func() {
		if recs.Len == 0 {
			l.release(f)
		}
	}()
	index, err := l.entries(f, p.view)
	if err != nil {
		return recs, false, err
	}
	pos, err := locate(f, p.view, index, seek)
	if err != nil || pos >= p.view.size {
		return recs, false, err
	}
	end, next := p.view.size, p.view.next
	if req.NextOffset < p.view.next {
		next = req.NextOffset
		if end, err = locate(f, p.view, index, next); err != nil {
			return recs, true, err
		}
	}
	end, next, err = fit(f, index, pos, end, next, req)
	if err != nil || end <= pos {
		return recs, true, err
	}
	recs = store.FileRecords(f, pos, int(end-pos), func() { l.release(f) })
	recs.Next = next
	return recs, true, nil
}

// entries returns a segment's index, from its file if the segment is closed.
func (l *log) entries(f *openFile, v view) ([]indexEntry, error) {
	if v.index != nil || v.size == 0 {
		return v.index, nil
	}
	f.load.Lock()
	defer f.load.Unlock()
	if f.loaded {
		return f.entries, nil
	}
	sum, entries, err := l.readIndex(v.seg, v.size)
	if err != nil || sum.print != v.print {
		// The file is missing, torn, or about what compaction made of the
		// segment. It is not written here, where compaction may be writing it.
		again := newSegment(l.dir, v.seg.base)
		if err := again.rebuild(f, v.size, l.interval()); err != nil {
			return nil, err
		}
		entries = again.index
	}
	f.entries, f.loaded = entries, true
	return entries, nil
}

// locate returns the position of the first batch whose last record is at or
// after offset, or the size if there is none.
func locate(f io.ReaderAt, v view, index []indexEntry, offset int64) (int64, error) {
	if offset <= v.seg.base {
		return 0, nil
	}
	e := entryAtOrBefore(index, uint32(min(offset-v.seg.base, 1<<32-1)))
	if v.seg.base+int64(e.rel) == offset {
		return int64(e.pos), nil
	}
	found := v.size
	err := eachHeader(f, int64(e.pos), v.size, func(pos int64, h record.Batch) error {
		if h.LastOffset() < offset {
			return nil
		}
		found = pos
		return errStop
	})
	return found, err
}

// fit shortens the run from pos to end, which holds what is below next, to what the
// request allows, at a batch boundary.
func fit(f io.ReaderAt, index []indexEntry, pos, end, next int64, req store.ReadRequest) (int64, int64, error) {
	limit := pos + int64(max(req.MaxBytes, 0))
	if end <= limit {
		return end, next, nil
	}
	from := pos
	if at, ok := lastEntryWithin(index, pos, limit); ok {
		from = at
	}
	// From the last indexed batch that fits, walk on to the last one that does.
	to := from
	err := eachHeader(f, from, end, func(p int64, h record.Batch) error {
		after := p + int64(h.Size())
		if after > limit && (p > pos || !req.MinOne) {
			next = h.BaseOffset()
			return errStop
		}
		to = after
		return nil
	})
	return to, next, err
}
