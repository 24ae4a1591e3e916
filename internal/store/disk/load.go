package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"muster/internal/record"
	"muster/internal/store"
)

const (
	// noLimit says that all of the active segment may be good.
	noLimit = -1

	startFile = "log-start"
	// indexHeadRead is enough for the head of an index file in most cases.
	indexHeadRead = 4096
)

// load reads the log's folder. If the last stop was not clean, the active
// segment is searched for where its good batches end and cut there; limit, if
// not noLimit, is a size beyond which nothing is trusted.
func (l *log) load(clean bool, limit int64) error {
	bases, err := l.tidyFolder()
	if err != nil {
		return err
	}
	logStart, err := l.readStart()
	if err != nil {
		return err
	}
	segments := make([]*segment, len(bases))
	for i, base := range bases {
		segments[i] = newSegment(l.dir, base)
		last := i == len(bases)-1
		if err := l.loadSegment(segments[i], last, clean, limit); err != nil {
			return fmt.Errorf("segment %s: %w", segments[i].path, err)
		}
		if i > 0 {
			// Compaction may have removed the last records of a segment.
			segments[i-1].sum.next = base
		}
	}
	l.take(segments, logStart)
	return l.dropSnapshotsAbove(l.logEnd)
}

// take makes the loaded segments the log's state.
func (l *log) take(segments []*segment, logStart int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.segments, l.epochs = segments, nil
	l.logStart, l.logEnd, l.durableSize = logStart, logStart, 0
	if len(segments) > 0 {
		l.logStart = max(logStart, segments[0].base)
		l.logEnd = max(l.active().sum.next, l.logStart)
		l.durableSize = l.active().sum.size
	}
	l.durableEnd = l.logEnd
	for _, s := range segments {
		for _, e := range s.sum.epochs {
			l.epochs = addEpoch(l.epochs, e)
		}
	}
	l.epochs = trimEpochs(l.epochs, l.logStart)
	if n := len(l.epochs); n > 0 {
		l.epoch = max(l.epoch, l.epochs[n-1].Epoch)
	}
}

// tidyFolder lists the base offsets of the log's segments, after it has
// finished or undone what a crash interrupted.
func (l *log) tidyFolder() ([]int64, error) {
	entries, err := l.store.fs.ReadDir(l.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	l.made = true
	var bases []int64
	var swaps []string
	for _, e := range entries {
		name := e.Name()
		if base, ok := parseOffsetName(name, logSuffix); ok {
			bases = append(bases, base)
		}
		switch {
		case strings.HasSuffix(name, swapSuffix):
			swaps = append(swaps, name)
		case strings.HasSuffix(name, cleanedSuffix), strings.HasSuffix(name, tmpSuffix):
			if err := l.store.fs.Remove(path.Join(l.dir, name)); err != nil {
				return nil, err
			}
		}
	}
	for _, name := range swaps {
		if bases, err = l.finishSwap(name, bases); err != nil {
			return nil, err
		}
	}
	slices.Sort(bases)
	return bases, nil
}

// readStart reads the log start offset that Trim left, 0 if none.
func (l *log) readStart() (int64, error) {
	b, err := readFile(l.store.fs, path.Join(l.dir, startFile), -1)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	start, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	if err != nil || start < 0 {
		return 0, fmt.Errorf("%w: %s does not hold an offset", store.ErrCorrupt, path.Join(l.dir, startFile))
	}
	return start, nil
}

// loadSegment fills in a segment's summary, and for the last one its index.
func (l *log) loadSegment(seg *segment, last, clean bool, limit int64) error {
	info, err := l.store.fs.Stat(seg.path)
	if err != nil {
		return err
	}
	if last && (!clean || limit != noLimit) {
		return l.salvageSegment(seg, info.Size(), limit)
	}
	seg.closed = !last
	if last {
		l.dirty = false
		return l.loadWhole(seg, info.Size())
	}
	if head, err := readFile(l.store.fs, seg.indexPath(), indexHeadRead); err == nil {
		if sum, _, _, err := decodeIndexHead(head); err == nil && sum.size == info.Size() {
			seg.sum = sum
			return nil
		}
	}
	if err := l.loadWhole(seg, info.Size()); err != nil {
		return err
	}
	seg.index = nil
	return nil
}

// loadWhole reads a segment's index file, or makes it anew from the segment.
func (l *log) loadWhole(seg *segment, size int64) error {
	if sum, entries, err := l.readIndex(seg, size); err == nil {
		seg.sum, seg.index = sum, entries
		if n := len(entries); n > 0 {
			seg.indexedAt = int64(entries[n-1].pos)
		}
		return l.readFirstTimestamp(seg)
	}
	f, err := l.acquire(seg)
	if err != nil {
		return err
	}
	defer l.release(f)
	if err := seg.rebuild(f, size, l.interval()); err != nil {
		return err
	}
	return writeFile(l.store.fs, seg.indexPath(), encodeIndex(seg.sum, seg.index), false)
}

func (l *log) interval() int64 {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.cfg.IndexInterval <= 0 {
		return 4096
	}
	return l.cfg.IndexInterval
}

func (l *log) readIndex(seg *segment, size int64) (summary, []indexEntry, error) {
	b, err := readFile(l.store.fs, seg.indexPath(), -1)
	if err != nil {
		return summary{}, nil, err
	}
	sum, entries, err := decodeIndex(b)
	if err == nil && sum.size != size {
		err = errIndex
	}
	return sum, entries, err
}

// readFirstTimestamp reads what segment.ms counts from.
func (l *log) readFirstTimestamp(seg *segment) error {
	if seg.sum.size == 0 {
		return nil
	}
	f, err := l.acquire(seg)
	if err != nil {
		return err
	}
	defer l.release(f)
	return eachHeader(f, 0, seg.sum.size, func(_ int64, h record.Batch) error {
		seg.firstTS = h.MaxTimestamp()
		return errStop
	})
}

// salvageSegment keeps the good batches of an active segment that a crash may
// have torn, and makes them durable, since a reader may see them from now on.
func (l *log) salvageSegment(seg *segment, size, limit int64) error {
	l.dirty = true
	f, err := l.acquire(seg)
	if err != nil {
		return err
	}
	defer l.release(f)
	upTo := size
	if limit != noLimit {
		upTo = min(size, limit)
	}
	if err := seg.salvage(f, upTo, l.interval()); err != nil {
		return err
	}
	if seg.sum.size < size {
		if err := f.Truncate(seg.sum.size); err != nil {
			return err
		}
	}
	return f.Datasync()
}

// trimEpochs forgets epochs that ended before logStart.
func trimEpochs(epochs []store.EpochStart, logStart int64) []store.EpochStart {
	for len(epochs) > 1 && epochs[1].Start <= logStart {
		epochs = epochs[1:]
	}
	if len(epochs) > 0 && epochs[0].Start < logStart {
		epochs = slices.Clone(epochs)
		epochs[0].Start = logStart
	}
	return epochs
}
