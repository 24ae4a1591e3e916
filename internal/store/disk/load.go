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
	"muster/internal/store/vfs"
)

const (
	// noLimit says that all of the active segment may be good.
	noLimit = -1

	startFile = "log-start"
	// indexHeadRead is enough for the head of an index file in most cases.
	indexHeadRead   = 4096
	defaultInterval = 4096
	// maxOffset is more than a log can reach in any time.
	maxOffset = 1 << 60
)

// load reads the log's folder. If the last stop was not clean, the active
// segment is searched for where its good batches end and cut there; limit, if
// not noLimit, is a size beyond which nothing is trusted.
func (l *log) load(clean bool, limit int64) error {
	segments, err := l.loadFolder(clean, limit)
	if err == nil {
		err = l.dropSnapshotsAbove(l.logEnd)
	}
	if err == nil {
		l.left = nil
		return nil
	}
	for _, s := range segments {
		l.store.files.drop(s)
	}
	if errors.Is(err, store.ErrCorrupt) {
		return err
	}
	return fmt.Errorf("%w: %w", store.ErrStorage, err)
}

func (l *log) loadFolder(clean bool, limit int64) ([]*segment, error) {
	bases, err := l.tidyFolder()
	if err != nil {
		return nil, err
	}
	if l.made && !clean {
		// A process that died may have left names, of the active segment or of
		// log-start, that a loss of power would take back.
		if err := l.store.fs.SyncDir(l.dir); err != nil {
			return nil, err
		}
	}
	logStart, err := l.readStart()
	if err != nil {
		return nil, err
	}
	var segments []*segment
	for i, base := range bases {
		seg := newSegment(l.dir, base)
		segments = append(segments, seg)
		if err := l.loadSegment(seg, i == len(bases)-1, clean, limit); err != nil {
			return segments, fmt.Errorf("segment %s: %w", seg.path, err)
		}
		if i > 0 {
			// Compaction may have removed the last records of a segment.
			segments[i-1].sum.next = base
		}
	}
	l.take(segments, logStart)
	if l.left != nil {
		l.resumeLeft()
	}
	l.cleaned = nil
	if n := len(segments); n > 0 {
		// Compaction never touches the active segment.
		l.cleaned = l.readCleaned().Before(segments[n-1].base)
		// What was compacted was covered first.
		l.covered = l.cleaned.NextOffset()
	}
	return segments, nil
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
	l.durableEnd, l.syncedSize = l.logEnd, l.durableSize
	for _, s := range segments {
		for _, e := range s.sum.epochs {
			l.epochs = store.AddEpoch(l.epochs, e.Epoch, e.Start)
		}
	}
	l.epochs = store.TrimEpochs(l.epochs, l.logStart)
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
	if err != nil || start < 0 || start > maxOffset {
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
	if last && l.left != nil {
		return l.loadLeft(seg, info.Size())
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
	l.writeIndex(seg, encodeIndex(seg.sum, seg.index))
	return nil
}

// writeIndex writes a segment's index file. It is only a help, made anew when
// it turns out missing or torn, so failing to write it is no failure: a log on
// a full disk must open, if only to be trimmed.
func (l *log) writeIndex(seg *segment, content []byte) {
	_ = writeFile(l.store.fs, seg.indexPath(), content, false)
}

func (l *log) interval() int64 {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.cfg.IndexInterval <= 0 {
		return defaultInterval
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
	if err := l.salvageFrom(seg, f, upTo); err != nil {
		return err
	}
	if seg.sum.size < size {
		if err := f.Truncate(seg.sum.size); err != nil {
			return err
		}
	}
	if l.rewrite {
		if err := writeAgain(f, seg.sum.size); err != nil {
			return err
		}
	}
	err = f.Datasync()
	l.rewrite = err != nil
	return err
}

// salvageFrom salvages a segment, from where its index file ends if it has one that is of
// no more than what may be good: it was written after a sync of what it covers. Any other
// is removed, durably, lest it seem to fit when the segment has grown again.
func (l *log) salvageFrom(seg *segment, f vfs.File, upTo int64) error {
	b, err := readFile(l.store.fs, seg.indexPath(), -1)
	if errors.Is(err, fs.ErrNotExist) {
		return seg.salvage(f, upTo, l.interval())
	}
	if err == nil {
		if sum, entries, err := decodeIndex(b); err == nil && sum.size <= upTo && seg.resume(f, sum, entries) {
			if err := l.readFirstTimestamp(seg); err != nil {
				return err
			}
			return seg.salvageRest(f, upTo, l.interval())
		}
	}
	if err := removeIfThere(l.store.fs, seg.indexPath()); err != nil {
		return err
	}
	if err := l.store.fs.SyncDir(l.dir); err != nil {
		return err
	}
	return seg.salvage(f, upTo, l.interval())
}

// writeAgain writes a file's content over itself. After a failed sync the
// kernel takes what it could not write for clean, and a second sync would
// succeed without writing it.
func writeAgain(f vfs.File, size int64) error {
	buf := make([]byte, min(size, 1<<20))
	for pos := int64(0); pos < size; pos += int64(len(buf)) {
		buf = buf[:min(int64(len(buf)), size-pos)]
		if _, err := f.ReadAt(buf, pos); err != nil {
			return err
		}
		if _, err := f.WriteAt(buf, pos); err != nil {
			return err
		}
	}
	return nil
}
