package seeds

import "time"

// event is something that happens at a time. Of two at the same time, the one
// that was planned first comes first.
type event struct {
	at  time.Duration
	seq uint64
	id  uint64
	run func()
}

func (e event) before(o event) bool { return e.at < o.at || e.at == o.at && e.seq < o.seq }

// queue is a binary heap of events.
type queue struct {
	items []event
	seq   uint64
}

func (q *queue) push(at time.Duration, id uint64, run func()) {
	q.seq++
	q.items = append(q.items, event{at: at, seq: q.seq, id: id, run: run})
	for i := len(q.items) - 1; i > 0; {
		parent := (i - 1) / 2
		if !q.items[i].before(q.items[parent]) {
			break
		}
		q.items[i], q.items[parent] = q.items[parent], q.items[i]
		i = parent
	}
}

func (q *queue) pop() (event, bool) {
	if len(q.items) == 0 {
		return event{}, false
	}
	top := q.items[0]
	last := len(q.items) - 1
	q.items[0], q.items[last] = q.items[last], event{}
	q.items = q.items[:last]
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < last; child++ {
			if q.items[child].before(q.items[least]) {
				least = child
			}
		}
		if least == i {
			return top, true
		}
		q.items[i], q.items[least] = q.items[least], q.items[i]
		i = least
	}
}
