package pump

import (
	"container/heap"
	"time"

	"muster/internal/machine"
)

// timers is the armed timers of a core, the next one first.
type timers struct {
	heap  timerHeap
	byKey map[machine.TimerKey]*armed
}

type armed struct {
	machine.Timer
	pos int
}

// set arms, replaces or cancels a timer.
func (t *timers) set(tm machine.Timer) {
	if t.byKey == nil {
		t.byKey = map[machine.TimerKey]*armed{}
	}
	a := t.byKey[tm.Key]
	switch {
	case tm.Cancel && a != nil:
		heap.Remove(&t.heap, a.pos)
		delete(t.byKey, tm.Key)
	case tm.Cancel:
	case a != nil:
		a.Timer = tm
		heap.Fix(&t.heap, a.pos)
	default:
		a = &armed{Timer: tm}
		t.byKey[tm.Key] = a
		heap.Push(&t.heap, a)
	}
}

// next returns when the next timer is due, the zero time if there is none.
func (t *timers) next() time.Time {
	if len(t.heap) == 0 {
		return time.Time{}
	}
	return t.heap[0].At
}

// due takes out a timer whose time has come.
func (t *timers) due(now time.Time) (machine.Timer, bool) {
	if len(t.heap) == 0 || t.heap[0].At.After(now) {
		return machine.Timer{}, false
	}
	a := heap.Pop(&t.heap).(*armed)
	delete(t.byKey, a.Key)
	return a.Timer, true
}

type timerHeap []*armed

func (h timerHeap) Len() int           { return len(h) }
func (h timerHeap) Less(i, j int) bool { return h[i].At.Before(h[j].At) }
func (h timerHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].pos, h[j].pos = i, j
}

// Push implements heap.Interface.
func (h *timerHeap) Push(x any) {
	a := x.(*armed)
	a.pos = len(*h)
	*h = append(*h, a)
}

// Pop implements heap.Interface.
func (h *timerHeap) Pop() any {
	old := *h
	a := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return a
}
