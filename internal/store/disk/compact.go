package disk

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"muster/internal/record"
	"muster/internal/store"
)

// maxCompactionKeys bounds the memory of one pass over a log. If a log has
// more different keys, the rest waits for the next pass.
const maxCompactionKeys = 2_000_000

// Compact implements store.Log. Closed segments are written anew without the
// records that a newer one of the same key makes obsolete, several into one
// where they have become small.
func (h *handle) Compact(ctx context.Context, c store.Compaction) error {
	l := h.log
	l.maintain.Lock()
	defer l.maintain.Unlock()
	l.appendMu.Lock()
	err := h.mayChange()
	l.appendMu.Unlock()
	if err != nil {
		return err
	}
	closed, maxSize := l.compactable(c)
	if !l.worthCompacting(closed, c) {
		return nil
	}
	latest, end, err := l.latestOffsets(ctx, closed)
	if err != nil {
		return err
	}
	p := pass{log: l, latest: latest, cleanedTo: l.cleanedTo, horizon: c.Now.Add(-c.DeleteRetention).UnixMilli()}
	for group := range groups(closed[:end], maxSize) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := p.rewrite(group); err != nil {
			return l.storageError("compact", err)
		}
	}
	l.cleanedTo = closed[end-1].sum.next
	return nil
}

// compactable returns the closed segments that may be compacted now.
func (l *log) compactable(c store.Compaction) (closed []*segment, maxSize int64) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	for _, s := range l.segments {
		recent := c.MinLag > 0 && s.sum.maxTS > c.Now.Add(-c.MinLag).UnixMilli()
		if !s.closed || s.sum.next > c.NextOffset || recent {
			break
		}
		closed = append(closed, s)
	}
	return closed, min(l.cfg.SegmentBytes, math.MaxInt32)
}

// worthCompacting applies min.cleanable.dirty.ratio and max.compaction.lag.ms.
func (l *log) worthCompacting(closed []*segment, c store.Compaction) bool {
	var total, dirty int64
	late := false
	for _, s := range closed {
		total += s.sum.size
		if s.base >= l.cleanedTo {
			dirty += s.sum.size
			late = late || c.MaxLag > 0 && s.sum.maxTS < c.Now.Add(-c.MaxLag).UnixMilli()
		}
	}
	return dirty > 0 && (late || float64(dirty) >= c.MinDirtyRatio*float64(total))
}

// latestOffsets returns the newest offset of every key in the segments not yet
// compacted, and how many segments it got through.
func (l *log) latestOffsets(ctx context.Context, closed []*segment) (map[string]int64, int, error) {
	latest := map[string]int64{}
	for i, s := range closed {
		if s.base < l.cleanedTo {
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, 0, err
		}
		err := l.eachBatch(s, func(b record.Batch) error {
			if b.Control() {
				return nil
			}
			return b.Each(func(r *record.Record) error {
				if r.Key != nil {
					latest[string(r.Key)] = r.Offset
				}
				return nil
			})
		})
		if err != nil {
			return nil, 0, err
		}
		if len(latest) >= maxCompactionKeys {
			return latest, i + 1, nil
		}
	}
	return latest, len(closed), nil
}

func (l *log) eachBatch(s *segment, fn func(record.Batch) error) error {
	f, err := l.acquire(s)
	if err != nil {
		return err
	}
	defer l.release(f)
	return eachHeader(f, 0, s.sum.size, func(pos int64, h record.Batch) error {
		b, err := readBatch(f, pos, h)
		if err != nil {
			return err
		}
		return fn(b)
	})
}

// groups yields runs of neighbouring segments that together are no larger than
// one segment may be.
func groups(segments []*segment, maxSize int64) func(func([]*segment) bool) {
	return func(yield func([]*segment) bool) {
		for len(segments) > 0 {
			n, size := 1, segments[0].sum.size
			for n < len(segments) && size+segments[n].sum.size <= maxSize &&
				segments[n].sum.next-segments[0].base < math.MaxInt32 {
				size += segments[n].sum.size
				n++
			}
			if !yield(segments[:n]) {
				return
			}
			segments = segments[n:]
		}
	}
}

// pass is one compaction of a log.
type pass struct {
	*log
	latest    map[string]int64
	cleanedTo int64 // tombstones below have been seen by an earlier pass
	horizon   int64 // tombstones older than this may go
}

// keep decides about one record. Records without key cannot be superseded and
// have no place in a compacted log.
func (p *pass) keep(r *record.Record) bool {
	if r.Key == nil {
		return false
	}
	if newest, ok := p.latest[string(r.Key)]; ok && newest > r.Offset {
		return false
	}
	return !r.Tombstone() || r.Offset >= p.cleanedTo || r.Timestamp > p.horizon
}

// filter returns the batch as it shall remain, nil if nothing of it does.
func (p *pass) filter(b record.Batch) (record.Batch, error) {
	if b.Control() {
		return b, nil
	}
	var kept []record.Record
	err := b.Each(func(r *record.Record) error {
		if p.keep(r) {
			kept = append(kept, *r)
		}
		return nil
	})
	switch {
	case err != nil || len(kept) == 0:
		return nil, err
	case len(kept) == int(b.Count()):
		return b, nil
	}
	return record.Build(record.TemplateOf(b), kept)
}

// rewrite replaces a group of segments by one. The file becomes the log's when
// it is renamed to <base>-<next>.swap: from then on recovery finishes the job,
// and readers find it under that name until it has its final one.
func (p *pass) rewrite(group []*segment) error {
	first, next := group[0], group[len(group)-1].sum.next
	seg := newSegment(p.dir, first.base)
	tmp := path.Join(p.dir, fmt.Sprintf("%020d%s", first.base, cleanedSuffix))
	if err := p.writeCleaned(seg, tmp, group); err != nil {
		return err
	}
	seg.closed = true
	var before int64
	for _, s := range group {
		before += s.sum.size
	}
	if seg.sum.size == before && len(group) == 1 {
		return p.store.fs.Remove(tmp)
	}
	swap := path.Join(p.dir, fmt.Sprintf("%020d-%020d%s", first.base, next, swapSuffix))
	if err := p.store.fs.Rename(tmp, swap); err != nil {
		return err
	}
	if err := p.store.fs.SyncDir(p.dir); err != nil {
		return err
	}
	index := encodeIndex(seg.sum, seg.index)
	seg.path, seg.sum.next, seg.index = swap, next, nil
	p.replace(group, seg)
	for _, s := range group {
		if err := p.removeSegment(s); err != nil {
			return err
		}
	}
	if err := p.store.files.move(seg, p.store.fs.Rename, segmentPath(p.dir, seg.base)); err != nil {
		return err
	}
	if err := writeFile(p.store.fs, seg.indexPath(), index, false); err != nil {
		return err
	}
	return p.store.fs.SyncDir(p.dir)
}

// writeCleaned writes what remains of a group to a file and syncs it.
func (p *pass) writeCleaned(seg *segment, name string, group []*segment) error {
	f, err := createFile(p.store.fs, name)
	if err != nil {
		return err
	}
	interval := p.interval()
	for _, s := range group {
		err = p.eachBatch(s, func(b record.Batch) error {
			kept, err := p.filter(b)
			if err != nil || kept == nil {
				return err
			}
			if _, err := f.WriteAt(kept, seg.sum.size); err != nil {
				return err
			}
			seg.note(kept, interval)
			return nil
		})
		if err != nil {
			break
		}
	}
	if err == nil {
		err = f.Datasync()
	}
	return errors.Join(err, f.Close())
}

// replace puts the new segment in the place of the group.
func (l *log) replace(group []*segment, seg *segment) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.segments, group[0])
	l.segments = slices.Replace(slices.Clone(l.segments), i, i+len(group), seg)
}

// finishSwap completes a compaction that a crash interrupted after its commit:
// the segments that the swap file replaces go, and it takes their place.
func (l *log) finishSwap(name string, bases []int64) ([]int64, error) {
	from, to, ok := parseSwapName(name)
	if !ok {
		return nil, fmt.Errorf("%w: unexpected file %s", store.ErrCorrupt, path.Join(l.dir, name))
	}
	var rest []int64
	for _, base := range bases {
		if base < from || base >= to {
			rest = append(rest, base)
			continue
		}
		s := newSegment(l.dir, base)
		for _, file := range []string{s.path, s.indexPath()} {
			if err := l.store.fs.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
		}
	}
	if err := l.store.fs.Rename(path.Join(l.dir, name), segmentPath(l.dir, from)); err != nil {
		return nil, err
	}
	return append(rest, from), l.store.fs.SyncDir(l.dir)
}

func parseSwapName(name string) (from, to int64, ok bool) {
	a, b, ok := strings.Cut(strings.TrimSuffix(name, swapSuffix), "-")
	if !ok {
		return 0, 0, false
	}
	from, err1 := strconv.ParseInt(a, 10, 64)
	to, err2 := strconv.ParseInt(b, 10, 64)
	return from, to, err1 == nil && err2 == nil && from >= 0 && to > from
}
