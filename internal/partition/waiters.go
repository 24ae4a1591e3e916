package partition

import (
	"sync"
	"time"
)

// Waiter is someone, typically a fetch, who waits for any of several
// partitions to change. It must not be used for a second wait.
type Waiter struct {
	C chan struct{} // receives when a watched partition changed
}

// NewWaiter returns a waiter that watches nothing yet.
func NewWaiter() *Waiter { return &Waiter{C: make(chan struct{}, 1)} }

type waiters struct {
	mu   sync.Mutex
	set  map[*Waiter]bool // true for readers of committed records
	left time.Time        // when the last one left
}

// Watch wakes w from now on whenever there is more to read.
func (p *Partition) Watch(w *Waiter) { p.waiters.add(w, false) }

// WatchCommitted wakes w from now on whenever there is more to read for readers of
// committed records.
func (p *Partition) WatchCommitted(w *Waiter) { p.waiters.add(w, true) }

func (ws *waiters) add(w *Waiter, committed bool) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.set == nil {
		ws.set = map[*Waiter]bool{}
	}
	ws.set[w] = committed
}

// Unwatch ends Watch and WatchCommitted.
func (p *Partition) Unwatch(w *Waiter) {
	p.waiters.mu.Lock()
	defer p.waiters.mu.Unlock()
	delete(p.waiters.set, w)
	if len(p.waiters.set) == 0 {
		p.waiters.left = time.Now()
	}
}

// wake wakes readers because there are more records, more committed ones, or both.
func (ws *waiters) wake(more, stabler bool) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for w, committed := range ws.set {
		if committed && !stabler || !committed && !more {
			continue
		}
		select {
		case w.C <- struct{}{}:
		default:
		}
	}
}

// lately says whether someone waits, or did a moment ago: a consumer that has
// nothing to read waits again and again.
func (ws *waiters) lately(moment time.Duration) bool {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return len(ws.set) > 0 || time.Since(ws.left) < moment
}
