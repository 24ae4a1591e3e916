package classic

import (
	"bytes"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/kind"
	"muster/internal/group/subscription"
	"muster/internal/journal"
)

// changeOf says what a join would change of a member, nil if nothing. It is only
// for people: that something changed is decided by matches.
func (g *Group) changeOf(m *Member, next []kmsg.JoinGroupRequestProtocol) *journal.Change {
	if m.matches(next) {
		return nil
	}
	c := &journal.Change{}
	same := slices.EqualFunc(m.Protocols, next, func(p Protocol, q kmsg.JoinGroupRequestProtocol) bool { return p.Name == q.Name })
	switch {
	case same:
	case m.loaded:
		c.Forgotten = true
	default:
		for _, p := range m.Protocols[:min(len(m.Protocols), kind.MaxNames)] {
			c.ProtocolsBefore = append(c.ProtocolsBefore, p.Name)
		}
		for _, p := range next[:min(len(next), kind.MaxNames)] {
			c.Protocols = append(c.Protocols, p.Name)
		}
	}
	a, b := m.selectedMetadata(g.Protocol, next)
	if g.ProtocolType == subscription.ConsumerType {
		compareSubscriptions(c, a, b)
	} else {
		c.Other = !bytes.Equal(a, b)
	}
	if same && c.TopicsAddedN+c.TopicsRemovedN == 0 && !c.Owned {
		c.Other = true // Something else differs, perhaps in a protocol that is not selected.
	}
	return c
}

// selectedMetadata returns what a member said and says of the protocol that is selected, or
// of the first one if it does not have that any more.
func (m *Member) selectedMetadata(selected string, next []kmsg.JoinGroupRequestProtocol) (was, is []byte) {
	for _, p := range next {
		if p.Name == selected {
			return m.Metadata(selected), p.Metadata
		}
	}
	if len(m.Protocols) == 0 || len(next) == 0 {
		return nil, nil
	}
	return m.Protocols[0].Metadata, next[0].Metadata
}

// compareSubscriptions compares what two joins of a consumer say.
func compareSubscriptions(c *journal.Change, was, is []byte) {
	a, err := subscription.ReadSubscription(was)
	b, err2 := subscription.ReadSubscription(is)
	if err != nil || err2 != nil {
		c.Other = !bytes.Equal(was, is)
		return
	}
	c.TopicsAdded, c.TopicsAddedN = kind.Without(b.Topics, a.Topics)
	c.TopicsRemoved, c.TopicsRemovedN = kind.Without(a.Topics, b.Topics)
	c.Owned = !bytes.Equal(a.Rest, b.Rest)
	c.Other = !bytes.Equal(a.UserData, b.UserData)
}
