package group

import (
	"maps"
	"slices"
	"time"

	"muster/internal/group/schema"
	"muster/internal/journal"
)

// wake makes a group that was loaded live.
func (g *classicGroup) wake(x *step, resumes bool) {
	g.revive(x.now, x.hosts)
	if resumes && g.rebalancing != nil {
		g.loads, g.lives = int8(min(g.rebalancing.Loads, maxLoads)), g.rebalancing.Lives
	}
	if g.members.len() > 0 {
		g.leaps, g.leapsFrom = true, g.generation
	}
	x.forgetSilences(&g.base, func(id string) bool { return g.members.get(id) != nil })
	for m := g.members.first; m != nil; m = m.next {
		m.silent = x.silentSince(&g.base, m.id)
		g.touch(x, m, min(g.patience(m.session), g.patienceWith(m.id, m.session)))
	}
	if g.members.len() > 0 {
		x.note(g, journal.KindLoaded)
	}
	switch {
	case resumes:
		x.write(&schema.RebalanceRecord{Group: g.id, Value: &schema.Rebalance{Generation: g.generation, Loads: int16(min(g.loads+1, maxLoads)), Lives: max(g.lives+1, 0)}})
		g.prepareRebalance(x, journal.Trigger{Kind: journal.TriggerResumed})
	case g.members.len() > x.cfg.MaxSize:
		g.prepareRebalance(x, journal.Trigger{Kind: journal.TriggerMaxSize})
	}
}

const (
	// maxLoads is how often it is counted that a group was loaded in the middle
	// of one rebalance.
	maxLoads = 30
	// minPatience is what is left, at least, of any patience.
	minPatience = time.Second
)

// patience is how long somebody is waited for in a rebalance that goes on after
// a load. Each load begins the wait anew, so a coordinator that is restarted
// again and again would wait for a member that is dead for ever: every load in
// the middle of the same rebalance halves it.
func (g *classicGroup) patience(d time.Duration) time.Duration {
	if g.loads == 0 {
		return d
	}
	return max(d>>g.loads, min(d, minPatience))
}

// isUnsettled says that the group was rebalancing when its records were written:
// a rebalance had begun after the generation that they have, or somebody had
// left it.
func (g *classicGroup) isUnsettled() bool {
	if g.hard == nil || len(g.hard.Members) == 0 {
		return false
	}
	if g.rebalancing != nil && g.rebalancing.Generation == g.hard.Generation {
		return true
	}
	for i := range g.hard.Members {
		if g.hasLeft(g.hard.Members[i].MemberID) {
			return true
		}
	}
	return false
}

func (g *classicGroup) hasLeft(id string) bool {
	generation, ok := g.departed[id]
	return ok && generation == g.hard.Generation
}

// forgetUnsettled removes what was noted of a rebalance that is over.
func (g *classicGroup) forgetUnsettled(x *step) {
	if g.rebalancing != nil {
		x.write(&schema.RebalanceRecord{Group: g.id})
	}
	for _, id := range slices.Sorted(maps.Keys(g.departed)) {
		x.write(&schema.DepartureRecord{Group: g.id, Member: id})
	}
}

// revive makes the soft state follow from the hard state.
func (g *classicGroup) revive(now time.Time, known hosts) {
	g.state, g.since = Empty, now.UnixMilli()
	v := g.hard
	if v == nil {
		return
	}
	g.generation, g.protocolType = v.Generation, v.ProtocolType
	if v.CurrentStateTimestamp >= 0 {
		g.since = v.CurrentStateTimestamp
	}
	if len(v.Members) == 0 {
		return
	}
	g.state = Stable
	if v.Protocol != nil {
		g.protocol = *v.Protocol
	}
	for i := range v.Members {
		if !g.hasLeft(v.Members[i].MemberID) {
			g.add(g.reviveMember(&v.Members[i], known), v.ProtocolType)
		}
	}
	if v.Leader != nil && g.members.get(*v.Leader) != nil {
		g.leader = *v.Leader
	}
}

// reviveMember makes a member of its record. Of the protocols that it supported
// only the selected one is known.
func (g *classicGroup) reviveMember(e *schema.GroupMember, known hosts) *member {
	host := known.of(plainHost(e.ClientHost))
	if e.ClientHost == host {
		e.ClientHost = host // The same text, but shared.
	}
	m := &member{
		id: e.MemberID, instance: e.InstanceID, clientID: e.ClientID, host: host,
		session:   time.Duration(e.SessionTimeoutMillis) * time.Millisecond,
		rebalance: time.Duration(e.RebalanceTimeoutMillis) * time.Millisecond,
		protocols: []protocol{{name: g.protocol, metadata: e.Subscription}},
		assigned:  e.Assignment,
		stored:    &e.MemberID,
		loaded:    true,
	}
	if e.RebalanceTimeoutMillis < 0 {
		m.rebalance = m.session // A value of version 0, which does not know it.
	}
	return m
}
