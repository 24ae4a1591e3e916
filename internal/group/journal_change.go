package group

import (
	"bytes"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/journal"
)

// change says what a join would change of a member, nil if nothing. It is only
// for people: that something changed is decided by matches.
func (g *classicGroup) change(m *member, next []kmsg.JoinGroupRequestProtocol) *journal.Change {
	if m.matches(next) {
		return nil
	}
	c := &journal.Change{}
	same := slices.EqualFunc(m.protocols, next, func(p protocol, q kmsg.JoinGroupRequestProtocol) bool { return p.name == q.Name })
	switch {
	case same:
	case m.loaded:
		c.Forgotten = true
	default:
		for _, p := range m.protocols[:min(len(m.protocols), maxNames)] {
			c.ProtocolsBefore = append(c.ProtocolsBefore, p.name)
		}
		for _, p := range next[:min(len(next), maxNames)] {
			c.Protocols = append(c.Protocols, p.Name)
		}
	}
	a, b := m.saysOf(g.protocol, next)
	if g.protocolType == consumerType {
		compareSubscriptions(c, a, b)
	} else {
		c.Other = !bytes.Equal(a, b)
	}
	if same && c.TopicsAddedN+c.TopicsRemovedN == 0 && !c.Owned {
		c.Other = true // Something else differs, perhaps in a protocol that is not selected.
	}
	return c
}

// saysOf returns what a member said and says of the protocol that is selected, or
// of the first one if it does not have that any more.
func (m *member) saysOf(selected string, next []kmsg.JoinGroupRequestProtocol) (was, is []byte) {
	for _, p := range next {
		if p.Name == selected {
			return m.metadata(selected), p.Metadata
		}
	}
	if len(m.protocols) == 0 || len(next) == 0 {
		return nil, nil
	}
	return m.protocols[0].metadata, next[0].Metadata
}

// compareSubscriptions compares what two joins of a consumer say.
func compareSubscriptions(c *journal.Change, was, is []byte) {
	a, err := readSubscription(was)
	b, err2 := readSubscription(is)
	if err != nil || err2 != nil {
		c.Other = !bytes.Equal(was, is)
		return
	}
	c.TopicsAdded, c.TopicsAddedN = without(b.topics, a.topics)
	c.TopicsRemoved, c.TopicsRemovedN = without(a.topics, b.topics)
	c.Owned = !bytes.Equal(a.rest, b.rest)
	c.Other = !bytes.Equal(a.userData, b.userData)
}
