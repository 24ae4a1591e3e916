package sasl

import "container/list"

// turns is who waits: addresses take turns, of an address the names do, and of a name it
// is the order in which they came. Each step costs the same, however many wait.
type turns struct {
	order list.List // of *queue, one for each address that waits
	by    map[string]*queue
}

// queue is of an address those that wait, in one queue for each name, or of a name.
type queue struct {
	place *list.Element // in what it is a part of
	order list.List     // of *queue, or of a name of *waiter
	by    map[uint64]*queue
}

// waiter waits for a turn.
type waiter struct {
	turn  chan struct{} // closed when it has come
	all   *turns
	from  string
	mark  uint64
	place *list.Element // nil when the wait is over
}

// push adds one who waits, by address and by the mark of address and name.
func (t *turns) push(from string, mark uint64) *waiter {
	address := t.by[from]
	if address == nil {
		if t.by == nil {
			t.by = map[string]*queue{}
		}
		address = &queue{by: map[uint64]*queue{}}
		address.place = t.order.PushBack(address)
		t.by[from] = address
	}
	name := address.by[mark]
	if name == nil {
		name = &queue{}
		name.place = address.order.PushBack(name)
		address.by[mark] = name
	}
	w := &waiter{turn: make(chan struct{}), all: t, from: from, mark: mark}
	w.place = name.order.PushBack(w)
	return w
}

// pop removes who is next; nil if there is none.
func (t *turns) pop() *waiter {
	front := t.order.Front()
	if front == nil {
		return nil
	}
	address := front.Value.(*queue)
	name := address.order.Front().Value.(*queue)
	w := name.order.Front().Value.(*waiter)
	t.order.MoveToBack(address.place)
	address.order.MoveToBack(name.place)
	w.leave()
	return w
}

// leave ends the wait; false says that it was over.
func (w *waiter) leave() bool {
	if w.place == nil {
		return false
	}
	address := w.all.by[w.from]
	name := address.by[w.mark]
	name.order.Remove(w.place)
	w.place = nil
	if name.order.Len() == 0 {
		address.order.Remove(name.place)
		delete(address.by, w.mark)
	}
	if len(address.by) == 0 {
		w.all.order.Remove(address.place)
		delete(w.all.by, w.from)
	}
	return true
}
