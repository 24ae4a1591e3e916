package leader

import (
	"slices"

	"muster/internal/partition"
)

// waiters are those who wait for records of a share partition. The share partition's lock
// guards them.
type waiters struct {
	all []*partition.Waiter
	// behind are those among them who found someone else reading the log, in the order in
	// which they came.
	behind []*partition.Waiter
}

func (ws *waiters) none() bool { return len(ws.all) == 0 }

// wakeAll wakes all, because there may be records for any of them.
func (ws *waiters) wakeAll() {
	for _, w := range ws.all {
		wake(w)
	}
	ws.behind = nil
}

// wakeNext wakes the next one who found someone else reading.
func (ws *waiters) wakeNext() {
	if len(ws.behind) > 0 {
		wake(ws.behind[0])
		ws.behind = slices.Delete(ws.behind, 0, 1)
	}
}

// queueUp notes that a waiter found someone else reading.
func (ws *waiters) queueUp(w *Wait) {
	if w != nil && !slices.Contains(ws.behind, w.Waiter) {
		ws.behind = append(ws.behind, w.Waiter)
	}
}

func wake(w *partition.Waiter) {
	select {
	case w.C <- struct{}{}:
	default:
	}
}

// watch has a waiter woken from now on.
func (p *part) watch(w *partition.Waiter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dropped {
		wake(w)
		return
	}
	p.waiters.all = append(p.waiters.all, w)
}

// unwatch ends watch. Whoever was to be woken after this one is woken now.
func (p *part) unwatch(w *partition.Waiter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	drop := func(list []*partition.Waiter) []*partition.Waiter {
		if i := slices.Index(list, w); i >= 0 {
			return slices.Delete(list, i, i+1)
		}
		return list
	}
	p.waiters.all, p.waiters.behind = drop(p.waiters.all), drop(p.waiters.behind)
	if !p.fetching {
		p.waiters.wakeNext()
	}
	p.forgetFailure()
}

// Wait is someone who waits for records of any of several share partitions. It is not used
// for a second wait.
type Wait struct {
	*partition.Waiter
	parts map[*part]struct{}
}

// NewWait returns a wait for nothing yet. Who fetches with it is woken when there may be more.
func NewWait() *Wait { return &Wait{partition.NewWaiter(), map[*part]struct{}{}} }

// add has the wait be woken by a share partition, and by its log.
func (w *Wait) add(p *part, committed bool) {
	if w == nil {
		return
	}
	if _, ok := w.parts[p]; ok {
		return
	}
	w.parts[p] = struct{}{}
	p.watch(w.Waiter)
	if committed {
		p.log.WatchCommitted(w.Waiter)
	} else {
		p.log.Watch(w.Waiter)
	}
}

// again wakes who waits: there is more to look at.
func (w *Wait) again() {
	if w != nil {
		wake(w.Waiter)
	}
}

// End ends the wait.
func (w *Wait) End() {
	for p := range w.parts {
		p.log.Unwatch(w.Waiter)
		p.unwatch(w.Waiter)
		p.leave()
	}
	clear(w.parts)
}
