package group

import (
	"maps"
	"slices"
	"time"

	"muster/internal/group/schema"
)

// emptyGroup is the record of a group that nobody has joined yet.
func emptyGroup(id string) *schema.GroupRecord {
	v := schema.Group{}
	v.CurrentStateTimestamp = -1
	return &schema.GroupRecord{Group: id, Value: &v}
}

// record returns the record of the group as it is now.
func (g *classicGroup) record() *schema.GroupRecord {
	v := schema.Group{}
	v.ProtocolType, v.Generation = g.protocolType, g.generation
	v.CurrentStateTimestamp = g.since
	if g.members.len() > 0 {
		protocol, leader := g.protocol, g.leader
		v.Protocol, v.Leader = &protocol, &leader
		v.Members = make([]schema.GroupMember, 0, g.members.len())
	}
	for m := g.members.first; m != nil; m = m.next {
		e := schema.GroupMember{}
		e.MemberID, e.InstanceID, e.ClientID, e.ClientHost = m.id, m.instance, m.clientID, m.host
		e.RebalanceTimeoutMillis = int32(m.rebalance / time.Millisecond)
		e.SessionTimeoutMillis = int32(m.session / time.Millisecond)
		e.Subscription, e.Assignment = m.metadata(g.protocol), m.assigned
		v.Members = append(v.Members, e)
	}
	return &schema.GroupRecord{Group: g.id, Value: &v}
}

// store stores the group as it is now. With that a rebalance is over, and so is
// what was noted of it.
func (g *classicGroup) store(x *step, r *schema.GroupRecord) {
	x.write(r)
	if g.rebalancing != nil {
		x.write(&schema.RebalanceRecord{Group: g.id})
	}
	for _, id := range slices.Sorted(maps.Keys(g.departed)) {
		x.write(&schema.DepartureRecord{Group: g.id, Member: id})
	}
	i := 0
	for m := g.members.first; m != nil; m = m.next {
		m.stored = &r.Value.Members[i].MemberID
		i++
	}
	x.leaving = slices.DeleteFunc(x.leaving, func(l leaving) bool { return l.group == g.id })
	g.loads = 0
}

// leaves notes that a member that the log has is no longer a member.
func (g *classicGroup) leaves(x *step, m *member) {
	if m.stored != nil {
		x.leaving = append(x.leaving, leaving{g.id, *m.stored})
		m.stored = nil
	}
}

// unsettled notes that the group is on its way to another generation. What it
// takes for a successor to go on from there is written at the end of the step,
// if the step does not get there itself.
func (g *classicGroup) unsettled(x *step) {
	if !g.changed {
		g.changed = true
		x.changed = append(x.changed, g)
	}
}

// flush writes that the group is rebalancing, and who is no longer a member: a
// member whose leave was acknowledged must not come back with a successor, which
// would let it hold its partitions for a whole session timeout. Kafka forgets
// it.
func (g *classicGroup) flush(x *step) {
	g.changed = false
	if g.gone || g.state != PreparingRebalance && g.state != CompletingRebalance || g.hard == nil || len(g.hard.Members) == 0 {
		return
	}
	if g.rebalancing == nil || g.rebalancing.Generation != g.hard.Generation {
		r := &schema.Rebalance{Generation: g.hard.Generation}
		if g.hard.Generation == g.leapsFrom { // Whoever goes on with it must not leap to the same place.
			r.Lives = 1
		}
		x.write(&schema.RebalanceRecord{Group: g.id, Value: r})
	}
	for _, l := range x.leaving {
		if l.group == g.id {
			x.write(&schema.DepartureRecord{Group: g.id, Member: l.member, Value: &schema.Departure{Generation: g.hard.Generation}})
		}
	}
}

// adopt has a group that its records have just made be as another one is, of which it has
// the members and their state.
func (g *classicGroup) adopt(x *step, as *classicGroup) {
	base, hard, rebalancing := g.base, g.hard, g.rebalancing
	*g = *as
	g.base, g.hard, g.rebalancing = base, hard, rebalancing
	i := 0
	for m := g.members.first; m != nil; m = m.next {
		m.stored = &hard.Members[i].MemberID
		i++
		g.rearm(x, m, m.session)
	}
}

// makeRoom removes what there is of an empty classic group but its offsets, for a group of
// another kind to take them over.
func makeRoom(x *step, id string) {
	g, ok := x.groups[id].(*classicGroup)
	if !ok {
		return
	}
	for pending := range g.pendingIDs() {
		g.forgetPending(x, pending)
	}
	g.forgetUnsettled(x)
	if g.hard != nil {
		x.write(&schema.GroupRecord{Group: id})
	}
}
