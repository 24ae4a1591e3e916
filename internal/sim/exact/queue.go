package exact

import (
	"container/heap"
	"time"
)

// event is something that happens at a time. Of two at the same time, the one
// that was planned first comes first.
type event struct {
	at  time.Duration
	seq uint64
	run func()
}

// queue is what will happen, the next first.
type queue struct {
	items []event
	seq   uint64
}

var _ heap.Interface = (*queue)(nil)

// Len implements heap.Interface.
func (q *queue) Len() int { return len(q.items) }

// Less implements heap.Interface.
func (q *queue) Less(i, j int) bool {
	a, b := &q.items[i], &q.items[j]
	return a.at < b.at || a.at == b.at && a.seq < b.seq
}

// Swap implements heap.Interface.
func (q *queue) Swap(i, j int) { q.items[i], q.items[j] = q.items[j], q.items[i] }

// Push implements heap.Interface.
func (q *queue) Push(x any) { q.items = append(q.items, x.(event)) }

// Pop implements heap.Interface.
func (q *queue) Pop() any {
	last := len(q.items) - 1
	e := q.items[last]
	q.items[last] = event{}
	q.items = q.items[:last]
	return e
}

func (q *queue) add(at time.Duration, run func()) {
	q.seq++
	heap.Push(q, event{at: at, seq: q.seq, run: run})
}

func (q *queue) next() event { return heap.Pop(q).(event) }
