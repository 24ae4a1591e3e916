package classic

import (
	"maps"
	"slices"
	"time"

	"muster/internal/group/kind"
	"muster/internal/group/schema"
	"muster/internal/journal"
)

// resume makes a group that was loaded live.
func (g *Group) resume(x *kind.Step, resumes bool) {
	g.revive(x.Now, x.Hosts)
	if resumes && g.rebalancing != nil {
		g.loads, g.priorLoads = int8(min(g.rebalancing.Loads, maxLoads)), g.rebalancing.Lives
	}
	if g.Members.Len() > 0 {
		g.FirstAfterLoad, g.LoadedGeneration = true, g.Generation
	}
	x.ForgetSilences(&g.Base, func(id string) bool { return g.Members.Get(id) != nil })
	for m := g.Members.First; m != nil; m = m.Next {
		m.Silent = x.SilentSince(&g.Base, m.ID)
		g.touch(x, m, min(g.remainingTimeout(m.Session), g.SessionLeft(m.ID, m.Session)))
	}
	if g.Members.Len() > 0 {
		x.Note(g, journal.KindLoaded)
	}
	switch {
	case resumes:
		x.Write(&schema.RebalanceRecord{Group: g.ID, Value: &schema.Rebalance{Generation: g.Generation, Loads: int16(min(g.loads+1, maxLoads)), Lives: max(g.priorLoads+1, 0)}})
		g.PrepareRebalance(x, journal.Trigger{Kind: journal.TriggerResumed})
	case g.Members.Len() > x.Cfg.MaxSize:
		g.PrepareRebalance(x, journal.Trigger{Kind: journal.TriggerMaxSize})
	}
}

const (
	// maxLoads is how often it is counted that a group was loaded in the middle
	// of one rebalance.
	maxLoads = 30
	// minPatience is what is left, at least, of any patience.
	minPatience = time.Second
)

// remainingTimeout is how long someone is waited for in a rebalance that goes on after
// a load. Each load begins the wait anew, so a coordinator that is restarted
// again and again would wait for a member that is dead for ever: every load in
// the middle of the same rebalance halves it.
func (g *Group) remainingTimeout(d time.Duration) time.Duration {
	if g.loads == 0 {
		return d
	}
	return max(d>>g.loads, min(d, minPatience))
}

// isUnsettled says that the group was rebalancing when its records were written:
// a rebalance had begun after the generation that they have, or someone had
// left it.
func (g *Group) isUnsettled() bool {
	if g.Hard == nil || len(g.Hard.Members) == 0 {
		return false
	}
	if g.rebalancing != nil && g.rebalancing.Generation == g.Hard.Generation {
		return true
	}
	for i := range g.Hard.Members {
		if g.hasLeft(g.Hard.Members[i].MemberID) {
			return true
		}
	}
	return false
}

func (g *Group) hasLeft(id string) bool {
	generation, ok := g.departed[id]
	return ok && generation == g.Hard.Generation
}

// forgetUnsettled removes what was noted of a rebalance that is over.
func (g *Group) forgetUnsettled(x *kind.Step) {
	if g.rebalancing != nil {
		x.Write(&schema.RebalanceRecord{Group: g.ID})
	}
	for _, id := range slices.Sorted(maps.Keys(g.departed)) {
		x.Write(&schema.DepartureRecord{Group: g.ID, Member: id})
	}
}

// revive makes the soft state follow from the hard state.
func (g *Group) revive(now time.Time, known kind.Hosts) {
	g.State, g.Since = Empty, now.UnixMilli()
	v := g.Hard
	if v == nil {
		return
	}
	g.Generation, g.ProtocolType = v.Generation, v.ProtocolType
	if v.CurrentStateTimestamp >= 0 {
		g.Since = v.CurrentStateTimestamp
	}
	if len(v.Members) == 0 {
		return
	}
	g.State = Stable
	if v.Protocol != nil {
		g.Protocol = *v.Protocol
	}
	for i := range v.Members {
		if !g.hasLeft(v.Members[i].MemberID) {
			g.Add(g.ReviveMember(&v.Members[i], known), v.ProtocolType)
		}
	}
	if v.Leader != nil && g.Members.Get(*v.Leader) != nil {
		g.Leader = *v.Leader
	}
}

// ReviveMember makes a member of its record. Of the protocols that it supported
// only the selected one is known.
func (g *Group) ReviveMember(e *schema.GroupMember, known kind.Hosts) *Member {
	host := known.Of(kind.PlainHost(e.ClientHost))
	if e.ClientHost == host {
		e.ClientHost = host // The same text, but shared.
	}
	m := &Member{
		ID: e.MemberID, Instance: e.InstanceID, ClientID: e.ClientID, Host: host,
		Session:   time.Duration(e.SessionTimeoutMillis) * time.Millisecond,
		Rebalance: time.Duration(e.RebalanceTimeoutMillis) * time.Millisecond,
		Protocols: []Protocol{{Name: g.Protocol, Metadata: e.Subscription}},
		Assigned:  e.Assignment,
		stored:    &e.MemberID,
		loaded:    true,
	}
	if e.RebalanceTimeoutMillis < 0 {
		m.Rebalance = m.Session // A value of version 0, which does not know it.
	}
	return m
}
