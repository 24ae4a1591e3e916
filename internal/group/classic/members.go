package classic

// smallGroup is up to how many members are looked up by going through them. Most
// groups are small, and a map for each of 100,000 groups would be most of what
// they take.
const smallGroup = 8

// memberList keeps members in the order in which they joined, with quick look-up
// and removal also in a group of thousands.
type memberList struct {
	First, Last *Member
	Count       int
	byID        map[string]*Member // nil in a small group
	byInstance  map[string]*Member // likewise, and if no one is static
}

func (l *memberList) Len() int { return l.Count }

func (l *memberList) Get(id string) *Member {
	if l.byID != nil {
		return l.byID[id]
	}
	for m := l.First; m != nil; m = m.Next {
		if m.ID == id {
			return m
		}
	}
	return nil
}

// static returns the member that holds a group instance id.
func (l *memberList) static(instance string) *Member {
	if l.byID != nil {
		return l.byInstance[instance]
	}
	for m := l.First; m != nil; m = m.Next {
		if m.Instance != nil && *m.Instance == instance {
			return m
		}
	}
	return nil
}

func (l *memberList) Add(m *Member) {
	m.prev, m.Next = l.Last, nil
	if l.Last == nil {
		l.First = m
	} else {
		l.Last.Next = m
	}
	l.Last = m
	l.Count++
	switch {
	case l.byID != nil:
		l.index(m)
	case l.Count > smallGroup:
		l.byID = make(map[string]*Member, 2*l.Count)
		for m := l.First; m != nil; m = m.Next {
			l.index(m)
		}
	}
}

func (l *memberList) index(m *Member) {
	l.byID[m.ID] = m
	if m.Instance != nil {
		if l.byInstance == nil {
			l.byInstance = map[string]*Member{}
		}
		l.byInstance[*m.Instance] = m
	}
}

func (l *memberList) remove(m *Member) {
	if m.prev == nil {
		l.First = m.Next
	} else {
		m.prev.Next = m.Next
	}
	if m.Next == nil {
		l.Last = m.prev
	} else {
		m.Next.prev = m.prev
	}
	if l.Count--; l.Count <= smallGroup {
		l.byID, l.byInstance = nil, nil
		return
	}
	delete(l.byID, m.ID)
	if m.Instance != nil {
		delete(l.byInstance, *m.Instance)
	}
}

// rename gives a member another id, in its place.
func (l *memberList) rename(m *Member, id string) {
	if l.byID != nil {
		delete(l.byID, m.ID)
		l.byID[id] = m
	}
	m.ID = id
}
