package disk

import (
	"context"
	"path"
	"slices"
	"strconv"

	"muster/internal/record"
	"muster/internal/store"
	"muster/internal/store/vfs"
)

// Trim implements store.Log. The new start is on disk before any file goes.
func (h *handle) Trim(_ context.Context, newStart int64) error {
	l := h.log
	l.maintain.Lock()
	defer l.maintain.Unlock()
	if move, err := h.beforeTrim(newStart); err != nil || !move {
		return err
	}
	c, err := l.coverBelow(newStart)
	if err != nil {
		return l.storageError("trim", err)
	}
	l.appendMu.Lock()
	defer l.appendMu.Unlock()
	if err := h.mayChange(); err != nil {
		return err
	}
	if err := l.save(c); err != nil {
		return l.storageError("trim", err)
	}
	// Else the journal could bring the log back without its start.
	if err := l.syncNamesNow(); err != nil {
		return l.storageError("trim", err)
	}
	content := strconv.FormatInt(newStart, 10) + "\n"
	if err := writeFile(l.store.fs, path.Join(l.dir, startFile), []byte(content), true); err != nil {
		return l.storageError("trim", err)
	}
	l.mu.Lock()
	l.logStart = newStart
	l.epochs = store.TrimEpochs(l.epochs, newStart)
	l.aborted.Trim(newStart)
	n := 0
	for n < len(l.segments)-1 && l.segments[n].sum.next <= newStart {
		n++
	}
	l.mu.Unlock()
	return l.dropFirst(n)
}

// beforeTrim says whether the log start offset must move, and closes the active
// segment if all of it goes.
func (h *handle) beforeTrim(newStart int64) (move bool, err error) {
	l := h.log
	l.appendMu.Lock()
	defer l.appendMu.Unlock()
	if err := h.mayChange(); err != nil {
		return false, err
	}
	logStart, logEnd := l.Bounds()
	if newStart > logEnd {
		return false, store.ErrOffsetOutOfRange
	}
	if newStart <= logStart {
		return false, nil
	}
	if l.active().sum.next <= newStart && l.active().sum.size > 0 {
		if err := l.roll(); err != nil {
			return false, l.storageError("trim", err)
		}
	}
	return true, nil
}

// Retain implements store.Log. It drops whole segments. While the log is being
// compacted it leaves the log for the next time, since the logs of others must
// not wait for that.
func (h *handle) Retain(_ context.Context, r store.Retention) error {
	l := h.log
	if !l.maintain.TryLock() {
		return nil
	}
	defer l.maintain.Unlock()
	n, next, err := h.beforeRetain(r)
	if err != nil || n == 0 {
		return err
	}
	c, err := l.coverBelow(next)
	if err != nil {
		return l.storageError("retain", err)
	}
	l.appendMu.Lock()
	defer l.appendMu.Unlock()
	if err := h.mayChange(); err != nil {
		return err
	}
	return l.dropCovered(n, c)
}

// beforeRetain says how many segments are to go, and the offset up to which they
// reach. It closes the active segment if that is among them.
func (h *handle) beforeRetain(r store.Retention) (n int, next int64, err error) {
	l := h.log
	l.appendMu.Lock()
	defer l.appendMu.Unlock()
	if err := h.mayChange(); err != nil || len(l.segments) == 0 {
		return 0, 0, err
	}
	if a := l.active(); a.sum.size > 0 && a.sum.next <= r.NextOffset && expired(a, r) {
		if err := l.roll(); err != nil {
			return 0, 0, l.storageError("retain", err)
		}
	}
	excess := l.Size() - r.MaxBytes
	for ; n < len(l.segments)-1; n++ {
		s := l.segments[n]
		bySize := r.MaxBytes >= 0 && excess >= s.sum.size
		trimmed := s.sum.next <= l.logStart // A crash came before the files went.
		if s.sum.next > r.NextOffset || !bySize && !trimmed && !expired(s, r) {
			break
		}
		excess -= s.sum.size
	}
	return n, l.segments[n].base, nil
}

func expired(s *segment, r store.Retention) bool {
	switch {
	case r.MaxAge < 0:
		return false
	case s.sum.size == 0:
		return true // Compaction left nothing that could be too young.
	case s.sum.maxTS == record.NoTimestamp:
		return false
	}
	return r.Now.UnixMilli()-s.sum.maxTS > r.MaxAge.Milliseconds()
}

// dropFirst removes the first n segments, oldest first, so that a crash leaves
// no hole.
func (l *log) dropFirst(n int) error {
	if n == 0 {
		return nil
	}
	l.mu.Lock()
	dropped := l.segments[:n]
	l.segments = slices.Clone(l.segments[n:])
	l.logStart = max(l.logStart, l.segments[0].base)
	l.epochs = store.TrimEpochs(l.epochs, l.logStart)
	l.aborted.Trim(l.logStart)
	l.mu.Unlock()
	for _, s := range dropped {
		if err := l.removeSegment(s); err != nil {
			// Files are left that the log does not know of. If it went on, they
			// could come back later with others missing between.
			l.failed.Store(true)
			return l.storageError("trim", err)
		}
	}
	if err := l.store.fs.SyncDir(l.dir); err != nil {
		return l.storageError("trim", err)
	}
	return nil
}

func (l *log) removeSegment(s *segment) error {
	l.store.files.drop(s)
	return l.removeFiles(s)
}

// removeFiles removes the index first: a crash must not leave it to a segment
// that compaction may put in this one's place.
func (l *log) removeFiles(s *segment) error {
	for _, name := range []string{s.indexPath(), s.path} {
		if err := removeIfThere(l.store.fs, name); err != nil {
			return err
		}
	}
	return nil
}

func removeIfThere(fsys vfs.FS, name string) error {
	return ifThere(fsys.Remove(name))
}
