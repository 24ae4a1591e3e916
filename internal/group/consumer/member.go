package consumer

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/classic"
	"muster/internal/group/kind"
	"muster/internal/group/modern"
	"muster/internal/group/schema"
	"muster/internal/machine"
)

// place is whose place in the group a heartbeat takes.
type place struct {
	modern.Place[*Member]
	in *Group // nil for one that is yet to be made
	// upgrade is the records that make a consumer group of a classic one, in which the
	// place then is; nil if it is one.
	upgrade []machine.Record
	before  *schema.ConsumerMember // what whoever has the place says of itself until now, nil for a new member
	returns bool                   // a static member that has left is back under its own id
}

// placeOf says whose heartbeat it is, or why no one's.
func placeOf(x *kind.Step, m *kmsg.ConsumerGroupHeartbeatRequest, h *modern.Heartbeat[Partition]) (p place, err *modern.Refusal) {
	c, err := groupOf(x, m, &p)
	if p.in = c; c != nil && err == nil {
		p.Place, err = c.PlaceOf(x, claimOf(m), h)
	}
	return p, err
}

func claimOf(m *kmsg.ConsumerGroupHeartbeatRequest) modern.Claim {
	return modern.Claim{Member: m.MemberID, Instance: m.InstanceID, Epoch: m.MemberEpoch}
}

// groupOf returns the group that a heartbeat is for, nil if the heartbeat makes
// it: of nothing, of offsets alone, or of a classic group that is empty. Of one that has
// members it is as it will be.
func groupOf(x *kind.Step, m *kmsg.ConsumerGroupHeartbeatRequest, p *place) (*Group, *modern.Refusal) {
	g := x.Groups[m.Group]
	if c, ok := g.(*Group); ok {
		return c, nil
	}
	if m.MemberEpoch != modern.EpochJoin {
		return nil, modern.Refused(kerr.GroupIDNotFound, "Consumer group "+m.Group+" not found.")
	}
	c, ok := g.(*classic.Group)
	switch {
	case g != nil && !ok:
		return nil, modern.Refused(kerr.GroupIDNotFound, "Group "+m.Group+" is not a consumer group.")
	case ok && !c.IsEmpty():
		return upgraded(x, c, p)
	}
	return nil, nil
}

// isUnchanged says whether a heartbeat tells nothing of its member that is not known
// already, as all but a few do. Then nothing of it need be copied or compared.
func (p place) isUnchanged(r *machine.Request, m *kmsg.ConsumerGroupHeartbeatRequest) bool {
	if p.Known == nil || p.Replaces != nil {
		return false
	}
	was := p.Known.Metadata
	return m.RackID == nil && m.RebalanceTimeoutMillis == -1 && m.ServerAssignor == nil && m.SubscribedTopicNames == nil && m.SubscribedTopicRegex == nil &&
		(m.InstanceID == nil || equalStrings(m.InstanceID, was.Instance)) && was.Classic == nil && was.ClientID == r.ClientID && kind.IsHost(was.Host, r.Host)
}

// metadata is what the member says of itself with this heartbeat. What it does not
// mention stays as it was.
func (p place) metadata(r *machine.Request, m *kmsg.ConsumerGroupHeartbeatRequest, known kind.Hosts) *schema.ConsumerMember {
	v := &schema.ConsumerMember{}
	switch {
	case p.Replaces != nil:
		*v = *p.Replaces.Metadata
	case p.Known != nil:
		*v = *p.Known.Metadata
	}
	v.ClientID, v.Host, v.Classic = r.ClientID, known.Of(r.Host), nil
	if m.InstanceID != nil {
		v.Instance = m.InstanceID
	}
	if m.RackID != nil {
		v.Rack = m.RackID
	}
	if m.RebalanceTimeoutMillis != -1 {
		v.RebalanceTimeoutMillis = m.RebalanceTimeoutMillis
	}
	if m.ServerAssignor != nil {
		v.Assignor = m.ServerAssignor
	}
	if m.SubscribedTopicNames != nil {
		v.Topics = sortedNames(m.SubscribedTopicNames)
	}
	if p := m.SubscribedTopicRegex; p != nil {
		if v.Regex = p; *p == "" {
			v.Regex = nil
		}
	}
	return v
}

func sortedNames(names []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(names)))
}

// subscribe notes what a member says of itself. A new one is a member with that; who has
// taken the place of another is one already, and is compared with that.
func subscribe(x *kind.Step, id, memberID string, p place, meta *schema.ConsumerMember) (*Group, *Member, modern.Change) {
	was := &schema.ConsumerMember{}
	if p.before != nil {
		was = p.before
	}
	if p.Replaces == nil && !sameMember(was, meta) {
		x.Write(&schema.ConsumerMemberRecord{Group: id, Member: memberID, Value: meta})
	}
	g := x.Groups[id].(*Group)
	mem := g.Member(memberID)
	names, pattern := !slices.Equal(was.Topics, meta.Topics), OrEmpty(was.Regex) != OrEmpty(meta.Regex)
	ch := modern.Change{Topics: names || pattern, Bumps: names, Replaced: p.Replaces != nil}
	if pattern {
		g.Forget(x)
		_, resolved := g.Regexes[mem.pattern()]
		ch.Bumps = ch.Bumps || mem.pattern() == "" || resolved
	}
	return g, mem, ch
}

// sameMember says whether nothing differs that is stored.
func sameMember(v, w *schema.ConsumerMember) bool {
	return equalStrings(v.Instance, w.Instance) && equalStrings(v.Rack, w.Rack) && v.ClientID == w.ClientID && v.Host == w.Host &&
		slices.Equal(v.Topics, w.Topics) && equalStrings(v.Regex, w.Regex) && v.RebalanceTimeoutMillis == w.RebalanceTimeoutMillis &&
		equalStrings(v.Assignor, w.Assignor) && sameClassic(v.Classic, w.Classic)
}

// OrEmpty is a text, "" if there is none.
func OrEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func equalStrings(a, b *string) bool {
	return a == b || a != nil && b != nil && *a == *b
}

// leave handles a heartbeat by which a member leaves.
func leave(x *kind.Step, r *machine.Request, m *kmsg.ConsumerGroupHeartbeatRequest) *modern.Refusal {
	g, ok := x.Groups[m.Group].(*Group)
	if !ok {
		return modern.Refused(kerr.GroupIDNotFound, "Consumer group "+m.Group+" not found.")
	}
	if err := g.Leave(x, r, claimOf(m)); err != nil {
		return err
	}
	resp := kmsg.NewPtrConsumerGroupHeartbeatResponse()
	resp.Version, resp.MemberID, resp.MemberEpoch = m.Version, &m.MemberID, m.MemberEpoch
	x.Reply(r.ID, resp)
	return nil
}

// fits says whether what whoever is replaced had, and was to have, can be stored under another
// member id.
func (p place) fits(x *kind.Step, id string) bool {
	return p.Replaces == nil || p.in.FitsReplacement(x, p.Replaces, id)
}
