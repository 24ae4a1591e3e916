package consumer

import (
	"slices"

	"muster/internal/group/kind"
	"muster/internal/group/modern"
	"muster/internal/journal"
	"muster/internal/machine"
	"muster/internal/metadata"
)

// reconcile brings a member nearer to its target, and stores where it has got to.
func (g *Group) reconcile(x *kind.Step, mem *Member, b PendingHeartbeat) {
	if mem.Current != nil && mem.HasSettled(g.TargetEpoch) && !b.unsubscribed {
		return
	}
	now, wants := mem.Now(), g.subscribesTo(mem, x.Image)
	now.Reconcile(&b.Heartbeat, &modern.Target{
		Epoch: g.TargetEpoch, Unsubscribed: b.unsubscribed,
		Wanted: func() []modern.Partition { return g.wantedPartitions(mem, x.Image) },
		Wants:  func(p modern.Partition) bool { return wants(p.Topic) },
		IsFree: func(p modern.Partition) bool { return g.isFree(p, mem) },
	})
	if mem.Current == nil || !now.Same(mem.Current) {
		g.storeCurrent(x, mem, &now)
	}
}

// subscribesTo says which topics a member subscribes to.
func (g *Group) subscribesTo(mem *Member, image *metadata.Image) func(metadata.TopicID) bool {
	var resolved []string
	if r := g.Regexes[mem.pattern()]; r != nil {
		resolved = r.Topics
	}
	var last metadata.TopicID
	wanted, asked := false, false
	return func(id metadata.TopicID) bool {
		if asked && id == last { // Lists are sorted by topic.
			return wanted
		}
		last, asked, wanted = id, true, false
		if image == nil {
			return false
		}
		if t := image.TopicByID(id); t != nil {
			_, named := slices.BinarySearch(mem.Metadata.Topics, t.Name)
			_, matched := slices.BinarySearch(resolved, t.Name)
			wanted = named || matched
		}
		return wanted
	}
}

// wantedPartitions is what of its target a member still subscribes to.
func (g *Group) wantedPartitions(mem *Member, image *metadata.Image) []modern.Partition {
	wants := g.subscribesTo(mem, image)
	out := make([]modern.Partition, 0, len(mem.Target))
	for _, p := range mem.Target {
		if wants(p.Topic) {
			out = append(out, p)
		}
	}
	return out
}

// storeCurrent stores where a member has got to. Whoever has to let go of something
// has its rebalance timeout for that, from now on.
func (g *Group) storeCurrent(x *kind.Step, mem *Member, now *modern.Current) {
	if mem.Now().State != now.State {
		mem.Since = x.Now
	}
	x.Write(CurrentRecord(g.ID, mem.ID, now))
	if now.State != modern.Unrevoked || mem.Metadata.Classic != nil { // A classic member must join again, and has that long for it.
		mem.StopRevoking(x, g.ID)
		return
	}
	g.giveTimeToRevoke(x, mem)
}

func (g *Group) giveTimeToRevoke(x *kind.Step, mem *Member) {
	mem.StartRevoking(x, g.ID, mem.rebalanceTimeout())
}

// revokeFired fences a member that has not let go of what it was told to.
func (g *Group) revokeFired(x *kind.Step, e machine.TimerFired) {
	if mem := g.Member(e.Key.Member); mem != nil && mem.RevokeFired(e) {
		addMemberTrigger(x, journal.TriggerNotRevoked, mem, func(t *journal.Trigger) { t.Revoke, t.At = g.unrevoked(x, mem), g.positions(x, mem) })
		g.fence(x, mem)
	}
}

// touch notes that a member was heard of.
func (g *Group) touch(x *kind.Step, mem *Member) {
	g.noteHeard(x, mem)
	session := g.sessionOf(x, mem)
	mem.Wait(x, &g.Base, session, session)
}

// noteHeard notes that a member is not silent any more since the load.
func (g *Group) noteHeard(x *kind.Step, mem *Member) {
	g.clearUnheard(mem)
	mem.Hear(x, &g.Base)
}

// sessionFired fences a member that was not heard of.
func (g *Group) sessionFired(x *kind.Step, e machine.TimerFired) {
	mem := g.Member(e.Key.Member)
	if mem == nil {
		return
	}
	session := g.sessionOf(x, mem)
	if !mem.SessionFired(x, &g.Base, e, session) {
		return
	}
	addMemberTrigger(x, journal.TriggerExpired, mem, func(t *journal.Trigger) {
		t.At = g.positions(x, mem)
		if t.Silent = session; mem.Now().State == modern.Unrevoked {
			t.Revoke = g.unrevoked(x, mem)
		}
	})
	g.fence(x, mem)
}
