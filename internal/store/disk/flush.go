package disk

import (
	"errors"
	"runtime"
	"sync"
	"time"

	"muster/internal/store"
)

const (
	// syncers is how many files are synced at the same time. Syncs of different
	// files share the file system's journal commits.
	syncers = 4
	// journaledMost is how much of a log goes to the journal. More is better synced
	// where it is.
	journaledMost = 32 << 10
)

// flushState collects those who wait for a log to become durable.
type flushState struct {
	mu      sync.Mutex
	waiting []func(error)
	queued  bool // a syncer or the rounder has the log, or it is in a queue
}

// syncer is the group commit: while a log is being synced or waits for that, all
// who ask wait for the next sync together. Logs of which little is to be synced go to
// the journal, all that wait in one round; others take turns.
type syncer struct {
	journal *journal // nil if there is none
	most    int64    // of a log that goes to the journal

	mu     sync.Mutex
	wake   *sync.Cond // of syncers
	round  *sync.Cond // of the rounder
	queue  []*log     // for syncers
	small  []*log     // for the rounder
	busy   int        // how many of them are at work
	idle   *sync.Cond // one has ended its work
	closed bool
	done   sync.WaitGroup
}

func newSyncer(j *journal, most int64) *syncer {
	s := &syncer{journal: j, most: most}
	s.wake, s.round, s.idle = sync.NewCond(&s.mu), sync.NewCond(&s.mu), sync.NewCond(&s.mu)
	for range syncers {
		s.done.Go(func() {
			for l := s.next(); l != nil; l = s.next() {
				l.syncWaiting()
				s.ended()
			}
		})
	}
	if j == nil {
		return s
	}
	s.done.Go(func() {
		r := rounder{syncer: s}
		for logs := s.nextRound(nil); logs != nil; logs = s.nextRound(logs) {
			r.run(logs)
			s.ended()
		}
	})
	return s
}

// push hands a log to the syncers, or to the rounder if it is small; false says that
// they have ended. If many logs wait before there is a journal, one is made for them.
func (s *syncer) push(l *log, small bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	if small || len(s.queue) >= journalAtOnce && s.journal != nil && !s.journal.on.Load() && !s.journal.failed.Load() {
		s.small = append(s.small, l)
		s.round.Signal()
	} else {
		s.queue = append(s.queue, l)
		s.wake.Signal()
	}
	return true
}

func (s *syncer) next() *log {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.queue) == 0 {
		if s.closed {
			return nil
		}
		s.wake.Wait()
	}
	l := s.queue[0]
	s.queue = s.queue[1:]
	s.busy++
	return l
}

func (s *syncer) ended() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy--
	s.idle.Broadcast()
}

// drain waits until no one waits for a log to become durable, but not for long.
func (s *syncer) drain(patience time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	late := false
	timer := time.AfterFunc(patience, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		late = true
		s.idle.Broadcast()
	})
	defer timer.Stop()
	for !late && len(s.queue)+len(s.small)+s.busy > 0 {
		s.idle.Wait()
	}
}

// nextRound returns all small logs that wait. It takes a list to use again. Whoever can
// run goes first, so that a busy broker has few large rounds; one that is not busy does
// not wait for anyone.
func (s *syncer) nextRound(done []*log) []*log {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.small) == 0 {
		if s.closed {
			return nil
		}
		s.round.Wait()
	}
	s.mu.Unlock()
	runtime.Gosched()
	s.mu.Lock()
	s.busy++
	out := s.small
	clear(done)
	s.small = done[:0]
	return out
}

func (s *syncer) close() {
	s.mu.Lock()
	s.closed = true
	s.wake.Broadcast()
	s.round.Broadcast()
	s.mu.Unlock()
	s.done.Wait()
}

// Flush implements store.Log.
func (h *handle) Flush(done func(error)) {
	l := h.log
	l.mu.RLock()
	durable, closed, small := l.durableEnd >= l.logEnd, l.closed, l.small()
	l.mu.RUnlock()
	if closed {
		done(store.ErrClosed)
		return
	}
	if durable {
		done(nil)
		return
	}
	l.flush.mu.Lock()
	l.flush.waiting = append(l.flush.waiting, done)
	enqueue := !l.flush.queued
	l.flush.queued = true
	l.flush.mu.Unlock()
	if enqueue {
		l.enqueue(small)
	}
}

// small says whether so little is to be synced that it goes to the journal. mu is held.
func (l *log) small() bool {
	s := l.store.sync
	return s.journal != nil && len(l.segments) > 0 && l.active().sum.size-l.durableSize <= s.most &&
		(s.journal.on.Load() || s.journal.wants())
}

func (l *log) enqueue(small bool) {
	if !l.store.sync.push(l, small) {
		l.failFlushes(store.ErrClosed)
	}
}

// takeWaiting returns who waits now.
func (l *log) takeWaiting() []func(error) {
	l.flush.mu.Lock()
	defer l.flush.mu.Unlock()
	waiting := l.flush.waiting
	l.flush.waiting = nil
	return waiting
}

// requeue puts the log at the back of a queue if someone waits: more may have come while
// it was synced, and a busy log must not keep a syncer for itself while others wait.
func (l *log) requeue() {
	l.flush.mu.Lock()
	l.flush.queued = len(l.flush.waiting) > 0
	again := l.flush.queued
	l.flush.mu.Unlock()
	if again {
		l.mu.RLock()
		small := l.small()
		l.mu.RUnlock()
		l.enqueue(small)
	}
}

// syncWaiting makes the log durable for those who wait now.
func (l *log) syncWaiting() {
	if waiting := l.takeWaiting(); len(waiting) > 0 {
		err := l.syncNow()
		if err != nil {
			if !errors.Is(err, store.ErrClosed) {
				// Whoever is told opens it again, and thereby makes it durable or cuts it back.
				l.failed.Store(true)
			}
			err = l.storageError("sync", err)
		}
		if l.store.inline {
			l.indexActive()
		}
		for _, done := range waiting {
			done(err)
		}
		if !l.store.inline { // No one waits for it.
			l.indexActive()
		}
	}
	l.requeue()
}

// syncNow makes durable, in the log's own files, what has been appended so far.
func (l *log) syncNow() error {
	l.syncMu.Lock()
	defer l.syncMu.Unlock()
	return l.syncHeld()
}

// syncHeld does so. syncMu is held.
func (l *log) syncHeld() error {
	for {
		err := l.syncActive()
		if !errors.Is(err, errGone) {
			return err
		}
		// The segment was closed, and thereby synced, and dropped meanwhile.
	}
}

// settle makes durable in the log's own files what the journal holds of it.
func (l *log) settle() error {
	if err := l.know(); err != nil {
		return err
	}
	if l.settled() {
		return nil
	}
	if err := l.syncNow(); err != nil && !errors.Is(err, store.ErrClosed) {
		return err
	}
	l.indexActive()
	return nil // Or it was deleted, or another log has its place, and everything in its files.
}

// settled says whether the log needs nothing from the journal. Of a round under way that
// is known when it has ended. A log with unsynced names was never synced, so it is not settled once the
// journal has something of it.
func (l *log) settled() bool {
	l.roundMu.Lock()
	defer l.roundMu.Unlock()
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.syncedSize >= l.durableSize
}

// syncActive syncs the active segment. A failure leaves in doubt what reached
// the disk, also for later syncs, so the log fails: it must be opened again,
// which cuts it back to what is known to be durable. syncMu is held.
func (l *log) syncActive() error {
	l.mu.RLock()
	if l.closed { // Also if it has failed before: no one waits for it to be mended.
		l.mu.RUnlock()
		return store.ErrClosed
	}
	if l.failed.Load() {
		l.mu.RUnlock()
		return store.ErrFailed
	}
	seg := l.active()
	end, size := l.logEnd, seg.sum.size
	now := synced{seg, seg.sum, seg.index}
	l.mu.RUnlock()
	f, err := l.acquire(seg)
	if err != nil {
		return err
	}
	defer l.release(f)
	began := time.Now()
	if err := f.Datasync(); err != nil {
		l.doubtful = true
		l.failed.Store(true)
		return err
	}
	if l.store.flushed != nil {
		l.store.flushed(time.Since(began))
	}
	if err := l.syncNames(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.active() == seg {
		l.durableEnd, l.durableSize, l.syncedSize = max(l.durableEnd, end), max(l.durableSize, size), size
		l.tail.forget(l.durableSize)
		l.toIndex = now
	}
	return nil
}

// synced is a segment as it was when it was last synced. What is appended to it later
// changes nothing of that.
type synced struct {
	seg   *segment
	sum   summary
	index []indexEntry
}

// indexActive writes an index file of the active segment now and then, while it grows: so
// a start after a kill need not read again what was synced.
func (l *log) indexActive() {
	l.syncMu.Lock()
	defer l.syncMu.Unlock()
	s := l.toIndex
	l.mu.RLock()
	closed := l.closed // Another log may have its folder.
	l.mu.RUnlock()
	if closed || s.seg == nil || s.sum.size < l.indexed+l.indexAfter() {
		return
	}
	l.toIndex = synced{}
	l.writeIndex(s.seg, encodeIndex(s.sum, s.index))
	l.indexed = s.sum.size
}

// indexAfter is by how much a segment must grow since it was last indexed: less while it is
// small, since a write of the file costs as much then, and a start reads less.
func (l *log) indexAfter() int64 {
	each := l.store.indexEach
	return max(each, min(l.indexed, 4*each), l.indexed/4)
}

// failFlushes answers those who wait. No lock of the log may be held: they may
// hold locks of their own and wait for the log's.
func (l *log) failFlushes(err error) {
	for _, done := range l.takeWaiting() {
		done(err)
	}
}
