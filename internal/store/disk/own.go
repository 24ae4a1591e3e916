package disk

import (
	"errors"
	"io/fs"

	"muster/internal/store"
)

// handle is a log as opened under one leader epoch.
type handle struct {
	*log
	epoch int32
}

var (
	_ store.Log    = (*handle)(nil)
	_ store.Failer = (*handle)(nil)
	_ store.Leaver = (*handle)(nil)
)

// Failed implements store.Failer.
func (h *handle) Failed() bool { return h.failed.Load() }

// own makes a new handle the owner of the log, which is loaded first if it was
// not yet.
func (l *log) own(leaderEpoch int32, cfg store.LogConfig) (*handle, error) {
	l.appendMu.Lock()
	defer l.appendMu.Unlock()
	if l.shutDown || l.replaced {
		return nil, errGone
	}
	if !l.loaded.Load() {
		if err := l.load(l.store.clean, noLimit); err != nil {
			return nil, err
		}
		l.loaded.Store(true)
	}
	switch {
	case leaderEpoch < l.epoch:
		return nil, &store.FencedError{Epoch: l.epoch}
	case l.failed.Load():
		return nil, store.ErrFailed
	}
	l.epoch = leaderEpoch
	l.owner = &handle{log: l, epoch: leaderEpoch}
	l.SetConfig(cfg)
	return l.owner, nil
}

// mayChange says whether the handle still owns the log, and whether the log is
// in order. appendMu is held.
func (h *handle) mayChange() error {
	switch {
	case h.shutDown:
		return store.ErrClosed
	case h.owner == h && h.failed.Load():
		return store.ErrFailed
	case h.owner == h:
		return nil
	case h.epoch < h.log.epoch:
		return store.ErrFenced
	default:
		return store.ErrClosed
	}
}

// reopen loads a failed log anew, cut back to what can be trusted. It becomes
// another log in the store, so that no one who still waits for the old one to
// become durable can be told so by a sync of the new one.
func (l *log) reopen(leaderEpoch int32) error {
	defer l.failFlushes(store.ErrFailed)
	l.haltMaintenance()
	defer l.resumeMaintenance()
	l.appendMu.Lock()
	defer l.appendMu.Unlock()
	l.syncMu.Lock()
	defer l.syncMu.Unlock()
	l.roundMu.Lock()
	defer l.roundMu.Unlock()
	switch {
	case l.shutDown || l.replaced:
		return errGone
	case leaderEpoch < l.epoch:
		return store.ErrFenced
	}
	fresh, err := l.loadAnew()
	if err != nil {
		// It may have been a sync that failed, so the next attempt trusts less.
		l.doubtful = true
		return err
	}
	fresh.loaded.Store(true)
	l.store.replace(l.tp, fresh)
	l.replaced, l.owner, l.epoch = true, nil, leaderEpoch
	l.endReads(true)
	l.dropFiles()
	return nil
}

// loadAnew loads the log once more. What the journal holds of it is then part of its own
// files, or refused, and has no meaning any more. syncMu and roundMu are held.
func (l *log) loadAnew() (*log, error) {
	j := l.store.sync.journal
	if j != nil && l.doubtful {
		if err := j.restore(l); err != nil {
			return nil, err
		}
	}
	fresh := newLog(l.store, l.tp)
	fresh.epoch, fresh.folder = l.epoch, l.folder
	if err := fresh.load(false, l.trusted()); err != nil {
		return nil, err
	}
	if !fresh.made {
		// A deletion that failed may have taken the folder, and must not be taken back.
		if err := l.store.nameGone(false); err != nil {
			return nil, err
		}
	}
	fresh.unsyncedNames = l.unsyncedNames && fresh.made
	if err := fresh.syncNames(); err != nil {
		return nil, err
	}
	if j != nil {
		if err := j.void(l); err != nil {
			return nil, err
		}
	}
	return fresh, nil
}

// trusted returns the size of the active segment up to which a failed log can
// be believed. After a failed write that is all that was published before it;
// after a failed sync, only what an earlier sync made durable, since the kernel
// may show data that it has given up to write. syncMu is held.
func (l *log) trusted() int64 {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.doubtful || len(l.segments) == 0 {
		return l.durableSize
	}
	return l.active().sum.size
}

// remove ends the log and renames its folder, and says whether there was one. If the
// rename fails the log goes on as before; if what follows does, it must be removed again.
func (l *log) remove(to string) (had bool, err error) {
	defer func() {
		if err == nil {
			l.failFlushes(store.ErrClosed)
		}
	}()
	l.haltMaintenance()
	defer l.resumeMaintenance()
	l.appendMu.Lock()
	defer l.appendMu.Unlock()
	if l.shutDown || l.replaced {
		return false, errGone
	}
	l.syncMu.Lock()
	defer l.syncMu.Unlock()
	l.roundMu.Lock()
	defer l.roundMu.Unlock()
	l.endReads(true)
	err = l.store.fs.Rename(l.dir, to)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		l.endReads(false)
		return false, err
	}
	had = err == nil
	if err := l.leave(had); err != nil {
		// Neither the folder nor the journal may bring back what is appended from now on.
		l.failed.Store(true)
		l.dropFiles()
		return had, err
	}
	l.shutDown = true
	l.store.replace(l.tp, nil)
	l.dropFiles()
	return had, nil
}

// leave makes it durable that the folder has another name, and then that the journal's
// frames are void: the other way round, a crash could leave a log that lacks them. syncMu
// and roundMu are held.
func (l *log) leave(renamed bool) error {
	if err := l.store.nameGone(renamed); err != nil {
		return err
	}
	if j := l.store.sync.journal; j != nil {
		return j.void(l)
	}
	return nil
}

// shutClean ends the log so that the next start can trust it without a scan.
func (l *log) shutClean() error {
	defer l.failFlushes(store.ErrClosed)
	l.haltMaintenance()
	defer l.resumeMaintenance()
	l.appendMu.Lock()
	defer l.appendMu.Unlock()
	l.shutDown = true
	defer l.endReads(true)
	if !l.dirty && !l.mustRoll && !l.failed.Load() {
		return nil
	}
	return l.shut()
}

// shut makes the log durable, or cuts it back. appendMu is held.
func (l *log) shut() error {
	if len(l.segments) > 0 {
		if err := l.seal(); err != nil {
			l.cutBack()
			return err
		}
	}
	return l.store.fs.SyncDir(l.dir)
}

// cutBack takes away what cannot be trusted of a failed log, as well as it can,
// lest the next process find it in the kernel's cache and take it for durable.
func (l *log) cutBack() {
	l.syncMu.Lock()
	defer l.syncMu.Unlock()
	l.roundMu.Lock()
	defer l.roundMu.Unlock()
	f, err := l.acquire(l.active())
	if err != nil {
		return
	}
	defer l.release(f)
	if f.Truncate(l.trusted()) == nil {
		_ = f.Datasync()
	}
}

// haltMaintenance keeps retention, trim and compaction out, and makes a
// compaction under way, which can last for minutes, give up.
func (l *log) haltMaintenance() {
	l.halting.Add(1)
	l.maintain.Lock()
}

func (l *log) resumeMaintenance() {
	l.maintain.Unlock()
	l.halting.Add(-1)
}

// endReads tells readers that the log has ended, or that it has not after all.
func (l *log) endReads(ended bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = ended
}

func (l *log) dropFiles() {
	for _, s := range l.segments {
		l.store.files.drop(s)
	}
}

// Close implements store.Log. The log itself stays with the store, which makes
// it durable when it closes; only this handle ends.
func (h *handle) Close() error {
	h.appendMu.Lock()
	defer h.appendMu.Unlock()
	if h.owner == h {
		h.owner = nil
	}
	return nil
}
