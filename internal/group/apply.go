package group

import (
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Replay applies a record that was read from the log. Compaction may have
// removed any others, so a record may come in any order and of a group that is
// not known; a tombstone of what is not known does nothing.
func (s *Shard) Replay(r Record) { s.apply(r) }

// apply changes the hard state. A group exists as long as it has a record or an
// offset.
func (s *Shard) apply(r Record) {
	g := s.groups[r.Group]
	if g == nil {
		if r.Meta == nil && r.Offset == nil {
			return
		}
		g = newGroup(r.Group)
		s.groups[r.Group] = g
	}
	if r.Topic == "" {
		g.hard = r.Meta
	} else {
		g.applyOffset(r)
	}
	if g.hard == nil && len(g.offsets) == 0 {
		g.state = Dead
		delete(s.groups, r.Group)
	}
}

func (g *group) applyOffset(r Record) {
	parts := g.offsets[r.Topic]
	if r.Offset == nil {
		delete(parts, r.Partition)
		if len(parts) == 0 {
			delete(g.offsets, r.Topic)
		}
		return
	}
	if parts == nil {
		if g.offsets == nil {
			g.offsets = map[string]map[int32]offset{}
		}
		parts = map[int32]offset{}
		g.offsets[r.Topic] = parts
	}
	parts[r.Partition] = *r.Offset
}

// revive makes the soft state follow from the hard state.
func (g *group) revive(now time.Time) {
	g.state, g.since = Empty, now
	v := g.hard
	if v == nil {
		return
	}
	g.generation, g.protocolType = v.Generation, v.ProtocolType
	if v.CurrentStateTimestamp >= 0 {
		g.since = time.UnixMilli(v.CurrentStateTimestamp)
	}
	if v.Protocol != nil {
		g.protocol = *v.Protocol
	}
	for i := range v.Members {
		g.add(g.reviveMember(&v.Members[i]), v.ProtocolType)
	}
	if g.members.len() == 0 {
		return
	}
	g.state = Stable
	if v.Leader != nil && g.members.get(*v.Leader) != nil {
		g.leader = *v.Leader
	}
}

// reviveMember makes a member of its record. Of the protocols that it supported
// only the selected one is known.
func (g *group) reviveMember(e *kmsg.GroupMetadataValueMember) *member {
	m := &member{
		id: e.MemberID, instance: e.InstanceID, clientID: e.ClientID, host: plainHost(e.ClientHost),
		session:   time.Duration(e.SessionTimeoutMillis) * time.Millisecond,
		rebalance: time.Duration(e.RebalanceTimeoutMillis) * time.Millisecond,
		protocols: []protocol{{name: g.protocol, metadata: e.Subscription}},
		assigned:  e.Assignment,
		loaded:    true,
	}
	if e.RebalanceTimeoutMillis < 0 {
		m.rebalance = m.session // A value of version 0, which does not know it.
	}
	return m
}
