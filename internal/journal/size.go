package journal

// About how many bytes things take without their texts and lists.
const (
	entrySize = 1024
	itemSize  = 128
)

// Size is about how many bytes of memory an entry takes, for those who let some wait.
func (e *Entry) Size() int {
	n := entrySize + len(e.Group) + len(e.Protocol) + len(e.ProtocolBefore) + len(e.State) + len(e.Kind) + len(e.Cause) + len(e.Type)
	n += e.Leader.size() + e.By.size() + e.Reset.size()
	for i := range e.Triggers {
		n += e.Triggers[i].size()
	}
	for _, list := range [...][]Late{e.Slowest, e.Held} {
		for i := range list {
			n += list[i].size()
		}
	}
	for _, list := range [...][]Absent{e.Missed, e.Waiting} {
		for i := range list {
			n += list[i].size()
		}
	}
	for i := range e.Moves {
		m := &e.Moves[i]
		n += itemSize + len(m.Topic) + len(m.From) + len(m.To)
	}
	for i := range e.Topics {
		n += itemSize + len(e.Topics[i].Topic)
	}
	for i := range e.Shares {
		n += e.Shares[i].size()
	}
	for i := range e.Revokes {
		n += e.Revokes[i].size()
	}
	for i := range e.Suspects {
		n += itemSize + len(e.Suspects[i].Topic)
	}
	return n
}

func (w *Who) size() int {
	if w == nil {
		return 0
	}
	return itemSize + len(w.Member) + len(w.ClientID) + len(w.Host) + len(w.Instance)
}

func (t *Trigger) size() int {
	n := 2*itemSize + t.Who.size() + len(t.Kind) + len(t.Reason) + len(t.Was) + len(t.Request) + t.By.size() + t.Revoke.size()
	if c := t.Change; c != nil {
		n += itemSize + len(c.Regex) + len(c.RegexBefore)
		for _, list := range [...][]string{c.TopicsAdded, c.TopicsRemoved, c.Protocols, c.ProtocolsBefore} {
			n += sizeOf(list)
		}
	}
	if t.Topics != nil {
		for i := range t.Topics.List {
			n += itemSize + len(t.Topics.List[i].Topic) + len(t.Topics.List[i].Kind)
		}
	}
	for i := range t.At {
		n += itemSize + len(t.At[i].Topic)
	}
	return n
}

func (r *Revoke) size() int {
	if r == nil {
		return 0
	}
	n := r.Who.size() + itemSize
	for i := range r.Parts {
		n += itemSize + len(r.Parts[i].Topic) + 4*len(r.Parts[i].Partitions)
	}
	for i := range r.For {
		n += r.For[i].size()
	}
	return n
}

// sizeOf is about how many bytes texts take.
func sizeOf(texts []string) (n int) {
	for _, s := range texts {
		n += 16 + len(s)
	}
	return n
}

// Size is about how many bytes of memory an entry takes.
func (t *Txn) Size() int {
	n := entrySize/2 + len(t.Key) + len(t.ID) + len(t.Kind) + len(t.Request) + sizeOf(t.Partitions)
	for _, h := range [...]*Holder{t.Holder, t.By} {
		if h != nil {
			n += len(h.ClientID) + len(h.Host)
		}
	}
	return n
}
