package disk

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"

	"muster/internal/record"
	"muster/internal/store"
)

// Compact implements store.Log. Closed segments are written anew without the
// records that a newer one of the same key makes obsolete, several into one
// where they have become small.
func (h *handle) Compact(ctx context.Context, c store.Compaction) error {
	l := h.log
	l.maintain.Lock()
	defer l.maintain.Unlock()
	if err := h.rollLate(c); err != nil {
		return err
	}
	closed, maxSize := l.compactable(c)
	worth, err := l.worthCompacting(closed, c)
	if err != nil || !worth {
		return err
	}
	logStart, _ := l.Bounds()
	aborted, err := l.Aborted(ctx, logStart, c.NextOffset)
	if err != nil {
		return err
	}
	p := pass{log: l, ctx: ctx, rule: store.NewCompactionPass(c, l.cleaned)}
	p.rule.Skip(aborted)
	next, err := p.run(closed, maxSize)
	if err != nil {
		return l.storageError("compact", err)
	}
	l.cleaned = l.cleaned.After(next, c)
	l.writeCleaned()
	return nil
}

// rollLate closes the active segment if max.compaction.lag.ms wants its records
// compacted by now, and no one may wait for the next append to do it.
func (h *handle) rollLate(c store.Compaction) error {
	l := h.log
	l.appendMu.Lock()
	defer l.appendMu.Unlock()
	if err := h.mayChange(); err != nil {
		return err
	}
	if len(l.segments) == 0 {
		return nil
	}
	if a := l.active(); a.sum.next > c.NextOffset || !c.Late(a.firstTS) {
		return nil
	}
	if err := l.roll(); err != nil {
		return l.storageError("compact", err)
	}
	return nil
}

// interrupted says whether compaction must give up, because no one wants its
// result or someone waits for the log.
func (l *log) interrupted(ctx context.Context) error {
	if l.halting.Load() > 0 {
		return store.ErrClosed
	}
	return ctx.Err()
}

// compactable returns the closed segments that may be compacted now.
func (l *log) compactable(c store.Compaction) (closed []*segment, maxSize int64) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	for _, s := range l.segments {
		if !s.closed || s.sum.next > c.NextOffset || c.Young(s.sum.maxTS) {
			break
		}
		closed = append(closed, s)
	}
	return closed, min(l.cfg.SegmentBytes, math.MaxInt32)
}

// worthCompacting says whether enough of the segments is dirty, or some of it
// for too long.
func (l *log) worthCompacting(closed []*segment, c store.Compaction) (bool, error) {
	var total, dirty int64
	oldest := int64(record.NoTimestamp)
	for _, s := range closed {
		total += s.sum.size
		if s.sum.next <= l.cleaned.NextOffset() {
			continue
		}
		dirty += s.sum.size
		if c.MaxLag <= 0 {
			continue
		}
		if s.firstTS == record.NoTimestamp {
			if err := l.readFirstTimestamp(s); err != nil {
				return false, l.storageError("compact", err)
			}
		}
		if s.firstTS >= 0 && (oldest < 0 || s.firstTS < oldest) {
			oldest = s.firstTS
		}
	}
	return c.Worth(dirty, total, oldest), nil
}

// noteKeys shows the pass the keys of the records not yet compacted, as many as
// it takes. It returns the segments with those, and the offset up to which it
// got.
func (p *pass) noteKeys(closed []*segment) ([]*segment, int64, error) {
	next := p.cleaned.NextOffset()
	for i, s := range closed {
		if s.sum.next <= next {
			continue
		}
		err := p.eachBatch(p.ctx, s, func(b record.Batch) error {
			if b.LastOffset() < next {
				return nil
			}
			if p.rule.Full() {
				return errStop
			}
			next = b.LastOffset() + 1
			return p.rule.Note(b)
		})
		if err != nil {
			return nil, 0, err
		}
		if p.rule.Full() {
			return closed[:i+1], next, nil
		}
		next = s.sum.next
	}
	return closed, next, nil
}

// run compacts segments, and returns the offset up to which it got.
func (p *pass) run(closed []*segment, maxSize int64) (int64, error) {
	segments, next, err := p.noteKeys(closed)
	if err != nil {
		return 0, err
	}
	if err := p.coverAll(segments); err != nil {
		return 0, err
	}
	for group := range groups(segments, maxSize) {
		if err := p.rewrite(group); err != nil {
			return 0, err
		}
	}
	return next, nil
}

// coverAll saves who sent what is in the segments, and has the last batches of
// those producers stay. An aborted transaction whose marker may go is forgotten
// before it does, also by older snapshots: no reader may be told of one that
// never ends.
func (p *pass) coverAll(segments []*segment) error {
	c, err := p.coverBelow(segments[len(segments)-1].sum.next)
	if err != nil {
		return err
	}
	p.appendMu.Lock()
	defer p.appendMu.Unlock()
	if err := p.save(c); err != nil {
		return err
	}
	list, from, err := p.lastSnapshot()
	if err != nil {
		return err
	}
	p.rule.Protect(list...)
	expired, err := p.expireAborted(p.rule.Expired)
	if err != nil || !expired {
		return err
	}
	return p.replaceSnapshots(list, from)
}

func (l *log) eachBatch(ctx context.Context, s *segment, fn func(record.Batch) error) error {
	f, err := l.acquire(s)
	if err != nil {
		return err
	}
	defer l.release(f)
	return eachHeader(f, 0, s.sum.size, func(pos int64, h record.Batch) error {
		if err := l.interrupted(ctx); err != nil {
			return err
		}
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
	ctx  context.Context
	rule *store.CompactionPass
}

// rewrite replaces a group of segments by one. The file becomes the log's when
// it is renamed to <base>-<next>.swap: from then on recovery finishes the job,
// and readers find it under that name until it has its final one.
func (p *pass) rewrite(group []*segment) error {
	first, next := group[0], group[len(group)-1].sum.next
	seg := newSegment(p.dir, first.base)
	tmp := path.Join(p.dir, fmt.Sprintf("%020d%s", first.base, cleanedSuffix))
	changed, err := p.writeCleaned(seg, tmp, group)
	if err != nil || !changed && len(group) == 1 {
		return errors.Join(err, removeIfThere(p.store.fs, tmp))
	}
	index := encodeIndex(seg.sum, seg.index)
	swap := path.Join(p.dir, fmt.Sprintf("%020d-%020d%s", first.base, next, swapSuffix))
	seg.path, seg.closed, seg.sum.next, seg.index = swap, true, next, nil
	if err := p.commit(group, seg, tmp); err != nil {
		// The folder is in a state that only loading it puts in order.
		p.failed.Store(true)
		return err
	}
	p.writeIndex(seg, index)
	return p.store.fs.SyncDir(p.dir)
}

// commit puts the new segment in the place of the group, on disk and in memory.
func (p *pass) commit(group []*segment, seg *segment, tmp string) error {
	if err := p.store.fs.Rename(tmp, seg.path); err != nil {
		return err
	}
	if err := p.store.fs.SyncDir(p.dir); err != nil {
		return err
	}
	p.replace(group, seg)
	for _, s := range group {
		if err := p.removeSegment(s); err != nil {
			return err
		}
	}
	return p.store.files.move(seg, p.store.fs.Rename, segmentPath(p.dir, seg.base))
}

// writeCleaned writes what remains of a group to a file and syncs it. It says
// whether that is less than there was.
func (p *pass) writeCleaned(seg *segment, name string, group []*segment) (changed bool, err error) {
	f, err := createFile(p.store.fs, name)
	if err != nil {
		return false, err
	}
	interval := p.interval()
	for _, s := range group {
		err = p.eachBatch(p.ctx, s, func(b record.Batch) error {
			kept, err := p.rule.Filter(b)
			changed = changed || len(kept) != len(b) || kept.CRC() != b.CRC()
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
	return changed, errors.Join(err, f.Close())
}

// replace puts the new segment in the place of the group.
func (l *log) replace(group []*segment, seg *segment) {
	l.appendMu.Lock()
	defer l.appendMu.Unlock()
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
		if err := l.removeFiles(newSegment(l.dir, base)); err != nil {
			return nil, err
		}
	}
	if err := l.store.fs.Rename(path.Join(l.dir, name), segmentPath(l.dir, from)); err != nil {
		return nil, err
	}
	return append(rest, from), l.store.fs.SyncDir(l.dir)
}

func parseSwapName(name string) (from, to int64, ok bool) {
	a, b, _ := strings.Cut(name, "-")
	from, ok1 := parseOffsetName(a, "")
	to, ok2 := parseOffsetName(b, swapSuffix)
	return from, to, ok1 && ok2 && to > from
}
