package lag

// node is the place of a ring among others, by how long they have rested.
type node[T any] struct {
	prev, next *node[T]
	item       *T
	moved      tick // When it changed.
}

// rest lists rings, those that rest longest first. Its zero value is empty.
type rest[T any] struct {
	first, last *node[T]
	count       int
}

// touch puts a ring, which is in the list or in none, to the end: it has changed.
func (l *rest[T]) touch(n *node[T], now tick) {
	n.moved = now
	if l.last == n {
		return
	}
	if n.prev != nil || l.first == n {
		l.remove(n)
	}
	n.prev = l.last
	if l.last != nil {
		l.last.next = n
	} else {
		l.first = n
	}
	l.last = n
	l.count++
}

// remove takes a ring out of the list that it is in.
func (l *rest[T]) remove(n *node[T]) {
	if n.prev != nil {
		n.prev.next = n.next
	} else {
		l.first = n.next
	}
	if n.next != nil {
		n.next.prev = n.prev
	} else {
		l.last = n.prev
	}
	n.prev, n.next = nil, nil
	l.count--
}
