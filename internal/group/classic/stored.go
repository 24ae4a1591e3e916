package classic

import (
	"slices"
	"time"

	"muster/internal/group/kind"
	"muster/internal/group/schema"
)

// EmptyGroup is the record of a group that no one has joined yet.
func EmptyGroup(id string) *schema.GroupRecord {
	v := schema.Group{}
	v.CurrentStateTimestamp = -1
	return &schema.GroupRecord{Group: id, Value: &v}
}

// Record returns the record of the group as it is now.
func (g *Group) Record() *schema.GroupRecord {
	v := schema.Group{}
	v.ProtocolType, v.Generation = g.ProtocolType, g.Generation
	v.CurrentStateTimestamp = g.Since
	if g.Members.Len() > 0 {
		protocol, leader := g.Protocol, g.Leader
		v.Protocol, v.Leader = &protocol, &leader
		v.Members = make([]schema.GroupMember, 0, g.Members.Len())
	}
	for m := g.Members.First; m != nil; m = m.Next {
		e := schema.GroupMember{}
		e.MemberID, e.InstanceID, e.ClientID, e.ClientHost = m.ID, m.Instance, m.ClientID, m.Host
		e.RebalanceTimeoutMillis = int32(m.Rebalance / time.Millisecond)
		e.SessionTimeoutMillis = int32(m.Session / time.Millisecond)
		e.Subscription, e.Assignment = m.Metadata(g.Protocol), m.Assigned
		v.Members = append(v.Members, e)
	}
	return &schema.GroupRecord{Group: g.ID, Value: &v}
}

// store stores the group as it is now. With that a rebalance is over, and so is
// what was noted of it.
func (g *Group) store(x *kind.Step, r *schema.GroupRecord) {
	over := g.UnsettledTombstones()
	x.Write(r)
	for _, t := range over {
		x.Write(t)
	}
	g.stored(x, r)
}

// stored notes that the log has the group as it is now.
func (g *Group) stored(x *kind.Step, r *schema.GroupRecord) {
	i := 0
	for m := g.Members.First; m != nil; m = m.Next {
		m.stored = &r.Value.Members[i].MemberID
		i++
	}
	x.Leaving = slices.DeleteFunc(x.Leaving, func(l kind.Leaving) bool { return l.Group == g.ID })
	g.loads = 0
}

// noteDeparture notes that a member that the log has is no longer a member.
func (g *Group) noteDeparture(x *kind.Step, m *Member) {
	if m.stored != nil {
		x.Leaving = append(x.Leaving, kind.Leaving{Group: g.ID, Member: *m.stored})
		m.stored = nil
	}
}

// flushLater notes that the group is on its way to another generation. What it
// takes for a successor to go on from there is written at the end of the step,
// if the step does not get there itself.
func (g *Group) flushLater(x *kind.Step) {
	if !g.changed {
		g.changed = true
		x.Changed = append(x.Changed, g)
	}
}

// Flush writes that the group is rebalancing, and who is no longer a member: a
// member whose leave was acknowledged must not come back with a successor, which
// would let it hold its partitions for a whole session timeout. Kafka forgets
// it.
func (g *Group) Flush(x *kind.Step) {
	g.changed = false
	if g.Gone || g.State != PreparingRebalance && g.State != CompletingRebalance || g.Hard == nil || len(g.Hard.Members) == 0 {
		return
	}
	if g.rebalancing == nil || g.rebalancing.Generation != g.Hard.Generation {
		r := &schema.Rebalance{Generation: g.Hard.Generation}
		if g.Hard.Generation == g.LoadedGeneration { // Whoever goes on with it must not leap to the same place.
			r.Lives = 1
		}
		x.Write(&schema.RebalanceRecord{Group: g.ID, Value: r})
	}
	for _, l := range x.Leaving {
		if l.Group == g.ID {
			x.Write(&schema.DepartureRecord{Group: g.ID, Member: l.Member, Value: &schema.Departure{Generation: g.Hard.Generation}})
		}
	}
}

// Adopt has a group that its records have just made be as another one is, of which it has
// the members and their state.
func (g *Group) Adopt(x *kind.Step, as *Group) {
	base, hard, rebalancing := g.Base, g.Hard, g.rebalancing
	*g = *as
	g.Base, g.Hard, g.rebalancing = base, hard, rebalancing
	i := 0
	for m := g.Members.First; m != nil; m = m.Next {
		m.stored = &hard.Members[i].MemberID
		i++
		g.rearm(x, m, m.Session)
	}
}

// ClearForUpgrade removes what there is of an empty classic group but its offsets, for a group of
// another kind to take them over.
func ClearForUpgrade(x *kind.Step, id string) {
	g, ok := x.Groups[id].(*Group)
	if !ok {
		return
	}
	for pending := range g.PendingIDs() {
		g.ForgetPending(x, pending)
	}
	g.forgetUnsettled(x)
	if g.Hard != nil {
		x.Write(&schema.GroupRecord{Group: id})
	}
}
