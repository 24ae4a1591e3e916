package group

// smallGroup is up to how many members are looked up by going through them. Most
// groups are small, and a map for each of 100,000 groups would be most of what
// they take.
const smallGroup = 8

// memberList keeps members in the order in which they joined, with quick look-up
// and removal also in a group of thousands.
type memberList struct {
	first, last *member
	count       int
	byID        map[string]*member // nil in a small group
	byInstance  map[string]*member // likewise, and if nobody is static
}

func (l *memberList) len() int { return l.count }

func (l *memberList) get(id string) *member {
	if l.byID != nil {
		return l.byID[id]
	}
	for m := l.first; m != nil; m = m.next {
		if m.id == id {
			return m
		}
	}
	return nil
}

// static returns the member that holds a group instance id.
func (l *memberList) static(instance string) *member {
	if l.byID != nil {
		return l.byInstance[instance]
	}
	for m := l.first; m != nil; m = m.next {
		if m.instance != nil && *m.instance == instance {
			return m
		}
	}
	return nil
}

func (l *memberList) add(m *member) {
	m.prev, m.next = l.last, nil
	if l.last == nil {
		l.first = m
	} else {
		l.last.next = m
	}
	l.last = m
	l.count++
	switch {
	case l.byID != nil:
		l.index(m)
	case l.count > smallGroup:
		l.byID = make(map[string]*member, 2*l.count)
		for m := l.first; m != nil; m = m.next {
			l.index(m)
		}
	}
}

func (l *memberList) index(m *member) {
	l.byID[m.id] = m
	if m.instance != nil {
		if l.byInstance == nil {
			l.byInstance = map[string]*member{}
		}
		l.byInstance[*m.instance] = m
	}
}

func (l *memberList) remove(m *member) {
	if m.prev == nil {
		l.first = m.next
	} else {
		m.prev.next = m.next
	}
	if m.next == nil {
		l.last = m.prev
	} else {
		m.next.prev = m.prev
	}
	if l.count--; l.count <= smallGroup {
		l.byID, l.byInstance = nil, nil
		return
	}
	delete(l.byID, m.id)
	if m.instance != nil {
		delete(l.byInstance, *m.instance)
	}
}

// rename gives a member another id, in its place.
func (l *memberList) rename(m *member, id string) {
	if l.byID != nil {
		delete(l.byID, m.id)
		l.byID[id] = m
	}
	m.id = id
}
