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
	known    *Member // nil for a new member
	replaces *Member // a static member that has left, or uses the classic protocol; nil for none
	// upgrade is the records that make a consumer group of a classic one, in which the
	// place then is; nil if it is one.
	upgrade []machine.Record
	before  *schema.ConsumerMember // what whoever has the place says of itself until now, nil for a new member
	returns bool                   // a static member that has left is back under its own id
}

// placeOf says whose heartbeat it is, or why no one's.
func placeOf(x *kind.Step, m *kmsg.ConsumerGroupHeartbeatRequest, h *modern.Heartbeat) (p place, err *protocolError) {
	c, err := groupOf(x, m, &p)
	if c == nil || err != nil {
		return p, err
	}
	joins := m.MemberEpoch == modern.EpochJoin
	p.known = c.Member(m.MemberID)
	full := p.known == nil && c.Present >= x.Cfg.Consumer.MaxSize
	if m.InstanceID != nil {
		holder := c.Instances[*m.InstanceID]
		switch {
		case full && (!joins || holder == nil || !holder.isReplaceable()): // Who takes a place takes no more room.
		case holder == nil && !joins:
			return p, refused(kerr.UnknownMemberID, "Instance "+*m.InstanceID+" is not a member of the group.")
		case holder == nil || holder.ID == m.MemberID:
		case !joins:
			return p, refused(kerr.FencedInstanceID, "Instance "+*m.InstanceID+" is owned by member "+holder.ID+".")
		case !holder.isReplaceable():
			return p, refused(kerr.UnreleasedInstanceID, "Instance "+*m.InstanceID+" is owned by member "+holder.ID+", which has not left.")
		default:
			p.replaces = holder
			return p, nil
		}
	}
	switch {
	case p.known != nil:
		return p, p.known.checkEpoch(m.MemberEpoch, h)
	case full:
		return p, refused(kerr.GroupMaxSizeReached, "The consumer group has reached its maximum capacity.")
	case !joins:
		return p, refused(kerr.UnknownMemberID, "Member "+m.MemberID+" is not a member of group "+m.Group+".")
	}
	return p, nil
}

// isReplaceable says whether someone else may come for a static member's place: if it has
// left for a while, or uses the classic protocol, where the last to come has it.
func (mem *Member) isReplaceable() bool {
	return mem.Now().Epoch == modern.EpochLeaveStatic || mem.Metadata.Classic != nil
}

// groupOf returns the group that a heartbeat is for, nil if the heartbeat makes
// it: of nothing, of offsets alone, or of a classic group that is empty. Of one that has
// members it is as it will be.
func groupOf(x *kind.Step, m *kmsg.ConsumerGroupHeartbeatRequest, p *place) (*Group, *protocolError) {
	g := x.Groups[m.Group]
	if c, ok := g.(*Group); ok {
		return c, nil
	}
	if m.MemberEpoch != modern.EpochJoin {
		return nil, refused(kerr.GroupIDNotFound, "Consumer group "+m.Group+" not found.")
	}
	if c, ok := g.(*classic.Group); ok && !c.IsEmpty() {
		return upgraded(x, c, p)
	}
	return nil, nil
}

// checkEpoch says whether a member may go on from the epoch that it names.
func (mem *Member) checkEpoch(epoch int32, h *modern.Heartbeat) *protocolError {
	why := ""
	switch mem.Check(epoch, h) {
	case modern.EpochFine:
		return nil
	case modern.EpochUnknown:
		why = "is in an unknown state"
	case modern.EpochAhead:
		why = "has partitions that the group coordinator does not know it has"
	case modern.EpochGreater:
		why = "has a greater member epoch than the one known by the group coordinator"
	case modern.EpochSmaller:
		why = "has a smaller member epoch than the one known by the group coordinator"
	}
	return refused(kerr.FencedMemberEpoch, "The consumer group member "+why+". The member must abandon all its partitions and rejoin.")
}

// isUnchanged says whether a heartbeat tells nothing of its member that is not known
// already, as all but a few do. Then nothing of it need be copied or compared.
func (p place) isUnchanged(r *machine.Request, m *kmsg.ConsumerGroupHeartbeatRequest) bool {
	if p.known == nil || p.replaces != nil {
		return false
	}
	was := p.known.Metadata
	return m.RackID == nil && m.RebalanceTimeoutMillis == -1 && m.ServerAssignor == nil && m.SubscribedTopicNames == nil && m.SubscribedTopicRegex == nil &&
		(m.InstanceID == nil || equalStrings(m.InstanceID, was.Instance)) && was.Classic == nil && was.ClientID == r.ClientID && kind.IsHost(was.Host, r.Host)
}

// metadata is what the member says of itself with this heartbeat. What it does not
// mention stays as it was.
func (p place) metadata(r *machine.Request, m *kmsg.ConsumerGroupHeartbeatRequest, known kind.Hosts) *schema.ConsumerMember {
	v := &schema.ConsumerMember{}
	switch {
	case p.replaces != nil:
		*v = *p.replaces.Metadata
	case p.known != nil:
		*v = *p.known.Metadata
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

// change is what a heartbeat changes of its member.
type change struct {
	topics   bool // what it subscribes to
	bumps    bool // so that the group has another epoch
	replaced bool // it has the place of another since
}

// subscribe notes what a member says of itself. A new one is a member with that; who has
// taken the place of another is one already, and is compared with that.
func subscribe(x *kind.Step, id, memberID string, p place, meta *schema.ConsumerMember) (*Group, *Member, change) {
	was := &schema.ConsumerMember{}
	if p.before != nil {
		was = p.before
	}
	if p.replaces == nil && !sameMember(was, meta) {
		x.Write(&schema.ConsumerMemberRecord{Group: id, Member: memberID, Value: meta})
	}
	g := x.Groups[id].(*Group)
	mem := g.Member(memberID)
	names, pattern := !slices.Equal(was.Topics, meta.Topics), OrEmpty(was.Regex) != OrEmpty(meta.Regex)
	ch := change{topics: names || pattern, bumps: names, replaced: p.replaces != nil}
	if pattern {
		g.forgetPatterns(x, OrEmpty(was.Regex))
		_, resolved := g.Regexes[mem.pattern()]
		ch.bumps = ch.bumps || mem.pattern() == "" || resolved
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

// leave handles a heartbeat by which a member leaves. A static one may leave
// for a while: no one else gets what it has until its session is over.
func leave(x *kind.Step, r *machine.Request, m *kmsg.ConsumerGroupHeartbeatRequest) *protocolError {
	g, ok := x.Groups[m.Group].(*Group)
	if !ok {
		return refused(kerr.GroupIDNotFound, "Consumer group "+m.Group+" not found.")
	}
	mem := g.Member(m.MemberID)
	if m.InstanceID != nil {
		switch mem = g.Instances[*m.InstanceID]; {
		case mem != nil && mem.ID != m.MemberID:
			return refused(kerr.FencedInstanceID, "Instance "+*m.InstanceID+" is owned by member "+mem.ID+".")
		}
	}
	if mem == nil {
		return refused(kerr.UnknownMemberID, "Member "+m.MemberID+" is not a member of group "+m.Group+".")
	}
	if m.MemberEpoch == modern.EpochLeaveStatic {
		g.leaveTemporarily(x, mem)
	} else {
		g.addLeaveTrigger(x, r, mem)
		g.fence(x, mem)
	}
	resp := kmsg.NewPtrConsumerGroupHeartbeatResponse()
	resp.Version, resp.MemberID, resp.MemberEpoch = m.Version, &m.MemberID, m.MemberEpoch
	x.Reply(r.ID, resp)
	return nil
}

func (g *Group) leaveTemporarily(x *kind.Step, mem *Member) {
	now := mem.Now()
	if now.Epoch == modern.EpochLeaveStatic {
		return
	}
	next := modern.Current{Epoch: modern.EpochLeaveStatic, Previous: now.Epoch, Assigned: make([]modern.Held, len(now.Assigned))}
	for i, p := range now.Assigned {
		next.Assigned[i].Partition = p.Partition
	}
	x.Write(CurrentRecord(g.ID, mem.ID, &next))
	g.clearUnheard(mem)
	if mem.Silent != 0 { // It has a whole session timeout, as if it had been heard of before.
		g.touch(x, mem)
	}
	mem.StopRevoking(x, g.ID)
	g.unpark(x, mem, refused(kerr.FencedMemberEpoch, "The member has left the group."))
}

// fence removes a member, and has the others share what it had.
func (g *Group) fence(x *kind.Step, mem *Member) {
	if to := g.DowngradedWithout(x, mem, ""); to != nil {
		x.EndSilence(&g.Base, mem.ID)
		why, who, members := x.Why, mem.who(), g.Present
		x.Why = nil
		next := g.downgrade(x, to, false)
		NoteDowngraded(x, next, &who, members)
		next.PrepareRebalance(x, why...)
		return
	}
	g.evict(x, mem)
}

// evict is the same in a group that stays one of the consumer protocol.
func (g *Group) evict(x *kind.Step, mem *Member) {
	pattern := mem.pattern()
	x.From = len(x.Records)
	g.removeMember(x, mem)
	if g.Gone { // There was no other record: a load has found no more.
		g.cancelRun(x)
		x.Why = nil
		return
	}
	g.forgetPatterns(x, pattern)
	g.raiseEpoch(x, g.checkTopics(x))
	if g.Present == 0 { // There is nothing to assign, and no one who would come to have it done. That is no run of the assignor.
		x.Write(&schema.ConsumerTargetEpochRecord{Group: g.ID, Value: &schema.ConsumerTargetEpoch{Epoch: g.Epoch, Timestamp: g.TargetAt}})
		g.cancelRun(x)
		g.noteSettled(x)
	}
}

// removeMember removes a member's records.
func (g *Group) removeMember(x *kind.Step, mem *Member) {
	g.unpark(x, mem, refused(kerr.UnknownMemberID, "Member "+mem.ID+" is not a member of group "+g.ID+" any more."))
	g.stopWaiting(x, mem)
	g.clearUnheard(mem)
	x.EndSilence(&g.Base, mem.ID)
	if mem.Current != nil {
		x.Write(&schema.ConsumerCurrentRecord{Group: g.ID, Member: mem.ID})
	}
	if mem.HasTarget {
		x.Write(&schema.ConsumerTargetRecord{Group: g.ID, Member: mem.ID})
	}
	if mem.Metadata != nil {
		x.Write(&schema.ConsumerMemberRecord{Group: g.ID, Member: mem.ID})
	}
}
