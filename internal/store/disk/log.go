package disk

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"sync"
	"sync/atomic"

	"muster/internal/record"
	"muster/internal/store"
)

// log is a partition's log on disk. Handles share it; one of them, the owner,
// may change it.
//
// Five locks, taken in this order: maintain (retention, trim, compaction),
// appendMu (append and roll, and everything about ownership), syncMu, roundMu, mu (what
// readers look at; never held during I/O). The list of segments changes only
// under both appendMu and mu, so that holding either is enough to read it. No
// callback is called under any of them.
type log struct {
	store  *Store
	tp     store.TopicPartition
	name   string // of its folder
	dir    string
	loaded atomic.Bool
	left   *leftLog // how a quick stop left it; what follows is not loaded yet then

	halting  atomic.Int32 // how many want maintenance to stop
	maintain sync.Mutex
	cleaned  store.Cleaned

	appendMu sync.Mutex
	owner    *handle
	epoch    int32
	made     bool   // the folder exists
	dirty    bool   // the active segment has no index file that fits it
	mustRoll bool   // a roll has begun and must be completed
	wasCut   bool   // a batch that was refused has been cut off, which may not be durable yet
	rewrite  bool   // a sync failed while the log was loaded
	covered  int64  // producers are known without the batches below this offset
	folder   uint64 // the number of the folder among those made since the start
	shutDown bool   // deleted, or the store is closed
	replaced bool   // the store has another log in its place

	// syncMu lets one sync at a time at the log, so that a roll cannot take a
	// segment for durable while a sync of it is failing.
	syncMu    sync.Mutex
	failed    atomic.Bool // the log takes no changes until it is opened again
	journaled uint64      // the last use of a journal file that has frames of it; the journal's round guards it
	doubtful  bool        // it was a sync that failed
	// roundMu is held while a round of the journal has something of the log, and by whoever
	// does more meanwhile than to append to it and to sync it: so a sync of its own file, which
	// may take long, does not keep it out of the journal.
	roundMu sync.Mutex
	// toIndex is what an index file of the active segment could say now, and indexed how
	// much of the segment the last one covers.
	toIndex synced
	indexed int64

	mu       sync.RWMutex
	cfg      store.LogConfig
	segments []*segment
	logStart int64
	logEnd   int64
	epochs   []store.EpochStart
	aborted  store.AbortedList
	// durableEnd is the log end offset, and durableSize the size of the active
	// segment, up to which a loss of power does no harm.
	durableEnd  int64
	durableSize int64
	// syncedSize is as much of the active segment as is durable without the journal. A
	// log with unsynced names may lose its folder and file without it.
	syncedSize    int64
	unsyncedNames bool
	tail          tail
	closed        bool // for readers: shut down or replaced

	// abortedLoaded says that aborted holds what the last snapshot does.
	abortedLoaded atomic.Bool

	flush flushState
}

func newLog(s *Store, tp store.TopicPartition) *log {
	name := folderName(tp)
	return &log{store: s, tp: tp, name: name, dir: path.Join(s.root, name), epoch: -1}
}

// Append implements store.Log.
func (h *handle) Append(_ context.Context, batch []byte) (store.Appended, error) {
	b := record.Batch(batch)
	if n, err := record.Peek(b); err != nil || n != len(b) {
		return store.Appended{}, store.ErrInvalidBatch
	}
	h.appendMu.Lock()
	defer h.appendMu.Unlock()
	if err := h.mayChange(); err != nil {
		return store.Appended{}, err
	}
	rolled, err := h.room(b)
	if err != nil {
		return store.Appended{}, h.storageError("append", err)
	}
	b.SetBaseOffset(h.logEnd)
	b.SetLeaderEpoch(h.epoch)
	// Also if the write fails: what is cut off may come back when power fails.
	h.dirty = true
	if err := h.write(b); err != nil {
		return store.Appended{}, h.storageError("append", err)
	}
	h.publish(b)
	return store.Appended{BaseOffset: b.BaseOffset(), LastOffset: b.LastOffset(), Rolled: rolled}, nil
}

// room makes sure that there is an active segment that takes the batch.
func (l *log) room(b record.Batch) (rolled bool, err error) {
	if len(l.segments) == 0 {
		return false, l.addSegment(l.logEnd)
	}
	l.mu.RLock()
	cfg := l.cfg
	l.mu.RUnlock()
	if !l.mustRoll && l.active().fits(b, l.logEnd, cfg) {
		return false, nil
	}
	return true, l.roll()
}

func (l *log) active() *segment { return l.segments[len(l.segments)-1] }

// write puts the batch at the end of the active segment, where no reader looks
// yet. If that fails the file is cut back, lest a longer torn batch stick out
// behind a shorter good one.
func (l *log) write(b record.Batch) error {
	seg := l.active()
	f, err := l.acquire(seg)
	if err != nil {
		return err
	}
	defer l.release(f)
	if _, err = f.WriteAt(b, seg.sum.size); err == nil {
		return nil
	}
	l.wasCut = true
	if cut := f.Truncate(seg.sum.size); cut != nil {
		l.failed.Store(true)
	}
	return err
}

// publish shows a written batch to readers.
func (l *log) publish(b record.Batch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	seg := l.active()
	l.tail.add(seg, seg.sum.size, b)
	seg.note(b, l.cfg.IndexInterval)
	l.logEnd = b.LastOffset() + 1
	l.epochs = store.AddEpoch(l.epochs, b.LeaderEpoch(), b.BaseOffset())
}

// addSegment creates a segment file and makes it the active one. That is durable, unless
// the log is new: then the journal makes it so, or the first sync. If
// it fails the file may be there or come back after a crash, and then the
// segment before it counts as closed; so that one must not take more batches.
func (l *log) addSegment(base int64) error {
	if !l.made {
		if err := l.makeFolder(); err != nil {
			return err
		}
	}
	l.mustRoll = true
	seg := newSegment(l.dir, base)
	f, err := createFile(l.store.fs, seg.path)
	if err != nil {
		return err
	}
	closeQuietly(f)
	if !l.unsyncedNames {
		if err := l.store.fs.SyncDir(l.dir); err != nil {
			return err
		}
	}
	l.syncMu.Lock()
	defer l.syncMu.Unlock()
	l.roundMu.Lock()
	defer l.roundMu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.segments = append(l.segments, seg)
	l.mustRoll, l.dirty = false, true
	l.durableEnd, l.durableSize, l.syncedSize = base, 0, 0
	l.toIndex, l.indexed = synced{}, 0
	return nil
}

// makeFolder makes the log's folder, whose name the first sync makes durable.
func (l *log) makeFolder() error {
	if err := l.store.fs.MkdirAll(l.dir); err != nil {
		return err
	}
	l.folder = l.store.folder.Add(1)
	l.made = true
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unsyncedNames = true
	return nil
}

func (l *log) hasUnsyncedNames() bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.unsyncedNames
}

// syncNamesNow does so at once.
func (l *log) syncNamesNow() error {
	l.syncMu.Lock()
	defer l.syncMu.Unlock()
	l.roundMu.Lock()
	defer l.roundMu.Unlock()
	return l.syncNames()
}

// syncNames makes the names of the log's folder and file durable. If that fails, so
// does the log: who was told of the failure must not find its batches later. syncMu is
// held.
func (l *log) syncNames() error {
	if !l.hasUnsyncedNames() {
		return nil
	}
	err := l.store.fs.SyncDir(l.dir)
	if err == nil {
		err = l.store.syncFolder(l.folder)
	}
	if err != nil {
		l.doubtful = true
		l.failed.Store(true)
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unsyncedNames = false
	return nil
}

// roll closes the active segment and starts the next. The old one is durable
// before the new one exists, so that only the last segment can be torn.
func (l *log) roll() error {
	seg := l.active()
	if err := l.seal(); err != nil {
		return err
	}
	if err := l.addSegment(l.logEnd); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	seg.closed, seg.index = true, nil
	return nil
}

// seal makes the active segment durable and writes its index file.
func (l *log) seal() error {
	l.syncMu.Lock()
	defer l.syncMu.Unlock()
	if err := l.syncHeld(); err != nil {
		return err
	}
	seg := l.active()
	l.writeIndex(seg, encodeIndex(seg.sum, seg.index))
	l.toIndex = synced{}
	return nil
}

func (l *log) acquire(seg *segment) (*openFile, error) {
	return l.store.files.acquire(seg, l.store.fs.Open)
}

func (l *log) release(f *openFile) { l.store.files.release(f) }

// storageError says what was attempted when the medium failed. That the log has
// ended is no failure of the medium.
func (l *log) storageError(what string, err error) error {
	if errors.Is(err, store.ErrClosed) {
		return err
	}
	return fmt.Errorf("%s to %s: %w: %w", what, folderName(l.tp), store.ErrStorage, err)
}

// Bounds implements store.Log.
func (l *log) Bounds() (logStart, logEnd int64) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.logStart, l.logEnd
}

// Size implements store.Log.
func (l *log) Size() int64 {
	l.mu.RLock()
	defer l.mu.RUnlock()
	var n int64
	for _, s := range l.segments {
		n += s.sum.size
	}
	return n
}

// Epochs implements store.Log.
func (l *log) Epochs() []store.EpochStart {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return slices.Clone(l.epochs)
}

// SetConfig implements store.Log.
func (l *log) SetConfig(cfg store.LogConfig) {
	if cfg.SegmentBytes <= 0 {
		cfg.SegmentBytes = 1 << 30
	}
	if cfg.IndexInterval <= 0 {
		cfg.IndexInterval = defaultInterval
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cfg = cfg
}
