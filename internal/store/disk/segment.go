package disk

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"math"
	"path"
	"strconv"
	"strings"
	"sync"

	"muster/internal/record"
	"muster/internal/store"
	"muster/internal/store/vfs"
)

const (
	logSuffix      = ".log"
	indexSuffix    = ".index"
	snapshotSuffix = ".snapshot"
	swapSuffix     = ".swap"
	cleanedSuffix  = ".cleaned"
	tmpSuffix      = ".tmp"
)

// segment is one file of a log. The active segment, the last, changes under
// the log's lock; a closed one never changes.
type segment struct {
	base int64
	dir  string
	path string // guarded by the file cache, since compaction renames
	gone bool   // guarded by the file cache: removed or replaced
	sum  summary
	// index and indexedAt are kept while the segment is active. The index of a
	// closed segment is read from its file when someone needs it.
	index     []indexEntry
	indexedAt int64
	firstTS   int64 // timestamp of the first batch, for segment.ms
	closed    bool
}

func segmentPath(dir string, base int64) string {
	return path.Join(dir, fmt.Sprintf("%020d%s", base, logSuffix))
}

func newSegment(dir string, base int64) *segment {
	return &segment{base: base, dir: dir, path: segmentPath(dir, base), sum: summary{next: base, maxTS: record.NoTimestamp}, firstTS: record.NoTimestamp}
}

func (s *segment) indexPath() string {
	return path.Join(s.dir, fmt.Sprintf("%020d%s", s.base, indexSuffix))
}

// parseOffsetName reads the offset out of names like 00000000000000000042.log.
func parseOffsetName(name, suffix string) (int64, bool) {
	digits, ok := strings.CutSuffix(name, suffix)
	// 20 digits and no sign, since only that names the file again.
	if !ok || len(digits) != 20 || digits[0] != '0' {
		return 0, false
	}
	o, err := strconv.ParseInt(digits, 10, 64)
	return o, err == nil
}

// printed is how much of each batch goes into a segment's fingerprint: from the
// base offset to the checksum.
const printed = 21

// note takes a batch that lies at the end of the segment into summary and
// index.
func (s *segment) note(b record.Batch, interval int64) {
	pos := s.sum.size
	if len(s.index) == 0 || pos-s.indexedAt >= interval {
		s.index = append(s.index, indexEntry{rel: uint32(b.BaseOffset() - s.base), pos: uint32(pos), before: s.sum.maxTS})
		s.indexedAt = pos
	}
	if s.firstTS == record.NoTimestamp {
		s.firstTS = b.MaxTimestamp()
	}
	s.sum.maxTS = max(s.sum.maxTS, b.MaxTimestamp())
	s.sum.next = b.LastOffset() + 1
	s.sum.size += int64(b.Size())
	s.sum.print = crc32.Update(s.sum.print, crcTable, b[:printed])
	if n := len(s.sum.epochs); n == 0 || s.sum.epochs[n-1].Epoch < b.LeaderEpoch() {
		s.sum.epochs = append(s.sum.epochs, store.EpochStart{Epoch: b.LeaderEpoch(), Start: b.BaseOffset()})
	}
}

// fits says whether a batch that starts at offset may go to the segment, or
// wants a new one.
func (s *segment) fits(b record.Batch, offset int64, cfg store.LogConfig) bool {
	// Index entries hold offsets relative to the base in 32 bits.
	if offset-s.base+int64(b.LastOffsetDelta()) > math.MaxInt32 {
		return false
	}
	if s.sum.size == 0 {
		return true
	}
	size := s.sum.size + int64(b.Size())
	if size > cfg.SegmentBytes || size > math.MaxInt32 {
		return false
	}
	return s.firstTS == record.NoTimestamp || cfg.SegmentAge <= 0 ||
		b.MaxTimestamp()-s.firstTS <= cfg.SegmentAge.Milliseconds()
}

// headerBuffers serve the walks over batch headers.
var headerBuffers = sync.Pool{New: func() any { b := make([]byte, 4096); return &b }}

// errStop ends a walk early.
var errStop = errors.New("stop")

// eachHeader calls fn with the position and header of every batch from pos to
// limit. It reads headers only; errStop from fn ends it without error.
func eachHeader(f io.ReaderAt, pos, limit int64, fn func(pos int64, h record.Batch) error) error {
	bp := headerBuffers.Get().(*[]byte)
	defer headerBuffers.Put(bp)
	var start int64
	var window []byte
	for pos < limit {
		if pos < start || pos+record.HeaderSize > start+int64(len(window)) {
			n := min(int64(len(*bp)), limit-pos)
			if n < record.HeaderSize {
				return fmt.Errorf("%w: header at position %d", store.ErrCorrupt, pos)
			}
			if _, err := f.ReadAt((*bp)[:n], pos); err != nil {
				return fmt.Errorf("%w: %w", store.ErrStorage, err)
			}
			start, window = pos, (*bp)[:n]
		}
		h := record.Batch(window[pos-start:][:record.HeaderSize])
		size, err := record.Peek(h)
		if err != nil || pos+int64(size) > limit {
			return fmt.Errorf("%w: batch at position %d", store.ErrCorrupt, pos)
		}
		if err := fn(pos, h); err != nil {
			if errors.Is(err, errStop) {
				return nil
			}
			return err
		}
		pos += int64(size)
	}
	return nil
}

// readBatch reads the whole batch at a position.
func readBatch(f io.ReaderAt, pos int64, h record.Batch) (record.Batch, error) {
	b := make(record.Batch, h.Size())
	if _, err := f.ReadAt(b, pos); err != nil {
		return nil, fmt.Errorf("%w: %w", store.ErrStorage, err)
	}
	if err := b.Check(); err != nil {
		return nil, fmt.Errorf("%w: position %d: %w", store.ErrCorrupt, pos, err)
	}
	return b, nil
}

// rebuild computes summary and index from the batch headers.
func (s *segment) rebuild(f io.ReaderAt, size, interval int64) error {
	s.sum, s.index, s.indexedAt = summary{next: s.base, maxTS: record.NoTimestamp}, nil, 0
	return eachHeader(f, 0, size, func(pos int64, h record.Batch) error {
		if !s.follows(h) {
			return fmt.Errorf("%w: batch at position %d has offset %d after %d", store.ErrCorrupt, pos, h.BaseOffset(), s.sum.next)
		}
		s.note(h, interval)
		return nil
	})
}

// follows says whether the offsets of a batch make sense after those before
// it. The checksum does not cover the base offset.
func (s *segment) follows(b record.Batch) bool {
	return b.BaseOffset() >= s.sum.next && b.LastOffsetDelta() >= 0 &&
		b.BaseOffset()-s.base <= math.MaxInt32-int64(b.LastOffsetDelta())
}

// resume takes summary and index from an index file, if the batches from its last entry
// on are those that it was made of.
func (s *segment) resume(f io.ReaderAt, sum summary, entries []indexEntry) bool {
	if len(entries) == 0 {
		return false
	}
	last := entries[len(entries)-1]
	next := s.base + int64(last.rel)
	err := eachHeader(f, int64(last.pos), sum.size, func(pos int64, h record.Batch) error {
		if h.BaseOffset() < next || pos == int64(last.pos) && h.BaseOffset() != next {
			return errIndex
		}
		b, err := readBatch(f, pos, h)
		if err == nil {
			next = b.LastOffset() + 1
		}
		return err
	})
	if err != nil || next != sum.next {
		return false
	}
	s.sum, s.index, s.indexedAt = sum, entries, int64(last.pos)
	return true
}

// salvage finds how far the file holds good batches in order, and computes
// summary and index from those. What lies beyond is torn.
func (s *segment) salvage(f io.ReaderAt, size, interval int64) error {
	s.sum, s.index, s.indexedAt = summary{next: s.base, maxTS: record.NoTimestamp}, nil, 0
	return s.salvageRest(f, size, interval)
}

// salvageRest salvages what follows the batches that are in the summary.
func (s *segment) salvageRest(f io.ReaderAt, size, interval int64) error {
	buf := make([]byte, min(size-s.sum.size, 1<<20))
	for s.sum.size < size {
		n := min(int64(len(buf)), size-s.sum.size)
		if _, err := f.ReadAt(buf[:n], s.sum.size); err != nil {
			return fmt.Errorf("%w: %w", store.ErrStorage, err)
		}
		need, done := s.salvageWindow(buf[:n], size-s.sum.size, interval)
		if done {
			return nil
		}
		if need > len(buf) {
			buf = make([]byte, need)
		}
	}
	return nil
}

// salvageWindow takes in the whole good batches of a window. It is done when
// it meets something else than a good batch; otherwise it says how large the
// window must be for the next one.
func (s *segment) salvageWindow(window []byte, left, interval int64) (need int, done bool) {
	for len(window) > 0 {
		n, err := record.Peek(window)
		if errors.Is(err, record.ErrTruncated) && int64(len(window)) < left {
			return 0, false
		}
		if err != nil || int64(n) > left {
			return 0, true
		}
		if n > len(window) {
			return n, false
		}
		b := record.Batch(window[:n])
		if b.Check() != nil || !s.follows(b) {
			return 0, true
		}
		s.note(b, interval)
		window, left = window[n:], left-int64(n)
	}
	return 0, false
}

// createFile makes an empty file, replacing what an earlier attempt left.
func createFile(fsys vfs.FS, name string) (vfs.File, error) {
	f, err := fsys.Create(name)
	if !errors.Is(err, fs.ErrExist) {
		return f, err
	}
	if err := fsys.Remove(name); err != nil {
		return nil, err
	}
	return fsys.Create(name)
}
