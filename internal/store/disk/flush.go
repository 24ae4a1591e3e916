package disk

import (
	"errors"
	"sync"
	"time"

	"muster/internal/store"
)

// syncers is how many files are synced at the same time. Syncs of different
// files share the file system's journal commits.
const syncers = 4

// flushState collects those who wait for a log to become durable.
type flushState struct {
	mu      sync.Mutex
	waiting []func(error)
	queued  bool // a syncer has the log, or it is in the queue
}

// syncer is the group commit: while a log is being synced or waits for that, all
// who ask wait for the next sync together. Logs take turns.
type syncer struct {
	mu     sync.Mutex
	wake   *sync.Cond
	queue  []*log
	closed bool
	done   sync.WaitGroup
}

func newSyncer() *syncer {
	s := &syncer{}
	s.wake = sync.NewCond(&s.mu)
	for range syncers {
		s.done.Go(func() {
			for l := s.next(); l != nil; l = s.next() {
				l.syncWaiting()
			}
		})
	}
	return s
}

// push hands a log to the syncers; false says that they have ended.
func (s *syncer) push(l *log) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.queue = append(s.queue, l)
	s.wake.Signal()
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
	return l
}

func (s *syncer) close() {
	s.mu.Lock()
	s.closed = true
	s.wake.Broadcast()
	s.mu.Unlock()
	s.done.Wait()
}

// Flush implements store.Log.
func (h *handle) Flush(done func(error)) {
	l := h.log
	l.mu.RLock()
	durable, closed := l.durableEnd >= l.logEnd, l.closed
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
	if enqueue && !l.store.sync.push(l) {
		l.failFlushes(store.ErrClosed)
	}
}

// syncWaiting makes the log durable for those who wait now. If more have come
// meanwhile, the log goes to the back of the queue, lest a busy log keep a
// syncer for itself while others wait.
func (l *log) syncWaiting() {
	l.flush.mu.Lock()
	waiting := l.flush.waiting
	l.flush.waiting = nil
	l.flush.mu.Unlock()
	if len(waiting) > 0 {
		err := l.syncNow()
		if err != nil {
			err = l.storageError("sync", err)
		}
		for _, done := range waiting {
			done(err)
		}
	}
	l.flush.mu.Lock()
	l.flush.queued = len(l.flush.waiting) > 0
	again := l.flush.queued
	l.flush.mu.Unlock()
	if again && !l.store.sync.push(l) {
		l.failFlushes(store.ErrClosed)
	}
}

// syncNow makes durable what has been appended so far.
func (l *log) syncNow() error {
	l.syncMu.Lock()
	defer l.syncMu.Unlock()
	for {
		err := l.syncActive()
		if !errors.Is(err, errGone) {
			return err
		}
		// The segment was closed, and thereby synced, and dropped meanwhile.
	}
}

// syncActive syncs the active segment. A failure leaves in doubt what reached
// the disk, also for later syncs, so the log fails: it must be opened again,
// which cuts it back to what is known to be durable. syncMu is held.
func (l *log) syncActive() error {
	if l.failed.Load() {
		return store.ErrFailed
	}
	l.mu.RLock()
	if l.closed {
		l.mu.RUnlock()
		return store.ErrClosed
	}
	seg := l.active()
	end, size := l.logEnd, seg.sum.size
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
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.active() == seg {
		l.durableEnd, l.durableSize = end, size
	}
	return nil
}

// failFlushes answers those who wait. No lock of the log may be held: they may
// hold locks of their own and wait for the log's.
func (l *log) failFlushes(err error) {
	l.flush.mu.Lock()
	waiting := l.flush.waiting
	l.flush.waiting = nil
	l.flush.mu.Unlock()
	for _, done := range waiting {
		done(err)
	}
}
