package assignor

import (
	"cmp"
	"slices"
)

// Range gives each subscriber of a topic one block of its partitions. The blocks
// of the first subscribers are longer by one where the partitions cannot be
// divided. Members have the same place in every topic that they subscribe to, so
// that those who subscribe to topics of one size have the same partitions of each:
// their records can be joined. Previous counts for nothing.
func Range(in *Input) [][]Partitions {
	o := newOwners(in)
	order := rangeOrder(in.Members)
	q := newQueue(newSubscriptions(in, order), order)
	for t := range in.Topics {
		o.blocks(int32(t), q)
	}
	return o.result()
}

// blocks gives the partitions of a topic to its subscribers.
func (o *owners) blocks(topic int32, q *queue) {
	owner, n := o.of(topic), q.subscribers[topic]
	q.begin(q.choices[topic])
	for i := range min(n, len(owner)) {
		m := q.next()
		from, next := block(len(owner), n, i)
		for p := from; p < next; p++ {
			owner[p] = m
		}
	}
}

// block returns the partitions of the i-th of n subscribers.
func block(partitions, n, i int) (from, next int) {
	size, longer := partitions/n, partitions%n
	from = i*size + min(i, longer)
	next = from + size
	if i < longer {
		next++
	}
	return from, next
}

// rangeOrder returns the members in the order of their blocks: static members by
// instance id, which stays when the process is started again, and then the others
// by member id.
func rangeOrder(members []Member) []int32 {
	order := inOrder(len(members))
	slices.SortStableFunc(order, func(a, b int32) int {
		x, y := members[a].Instance, members[b].Instance
		if (x == "") != (y == "") {
			return cmp.Compare(y, x)
		}
		return cmp.Compare(x, y)
	})
	return order
}

// inOrder returns the numbers below n.
func inOrder(n int) []int32 {
	order := make([]int32, n)
	for i := range order {
		order[i] = int32(i)
	}
	return order
}

// queue has the subscribers of a topic wait in the order of their blocks. It merges
// the classes only as far as it is asked: a topic with few partitions has blocks
// for few of its subscribers.
type queue struct {
	*subscriptions
	heap       // the classes, the one whose next member comes first in front
	had  []int // by class: how many of its members have had their turn
	work int   // counts comparisons
}

func newQueue(s *subscriptions, order []int32) *queue {
	place := make([]int32, len(order)) // by member
	for i, m := range order {
		place[m] = int32(i)
	}
	q := &queue{subscriptions: s, had: make([]int, len(s.classes))}
	waits := func(c int32) int32 { return place[s.classes[c].members[q.had[c]]] }
	q.heap = heap{
		at:     slices.Repeat([]int32{absent}, len(s.classes)),
		before: func(a, b int32) bool { return waits(a) < waits(b) },
		work:   &q.work,
	}
	return q
}

// begin has all members of these classes wait.
func (q *queue) begin(classes []int32) {
	for _, c := range classes {
		q.had[c] = 0
	}
	q.reset(classes)
}

// next returns the next member, of which there is one.
func (q *queue) next() int32 {
	c := q.first()
	m := q.classes[c].members[q.had[c]]
	q.had[c]++
	if q.had[c] == len(q.classes[c].members) {
		q.drop()
	} else {
		q.fix(c)
	}
	return m
}
