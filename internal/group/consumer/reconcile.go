package consumer

import (
	"slices"
	"time"

	"muster/internal/group/kind"
	"muster/internal/group/modern"
	"muster/internal/journal"
	"muster/internal/machine"
	"muster/internal/metadata"
)

// reconcile brings a member nearer to its target: first it lets go of what it is not
// to have any more, and says so; then it gets what others have let go of.
func (g *Group) reconcile(x *kind.Step, mem *Member, b Beat) {
	if at := mem.Current; at != nil && at.State == modern.Stable && at.Epoch == g.TargetEpoch && !b.unsubscribed {
		return
	}
	now := mem.Now()
	if now.Epoch < 0 { // A static member is back.
		now.Epoch, now.Previous = modern.EpochJoin, modern.EpochJoin
	}
	holdsOn := now.State == modern.Unrevoked && b.stillOwns(now.Pending)
	switch {
	case !holdsOn:
		g.advance(x, mem, &now, b)
	case b.unsubscribed:
		g.dropUnsubscribed(x, mem, &now)
	}
	if mem.Current == nil || !now.Same(mem.Current) {
		g.storeCurrent(x, mem, &now)
	}
}

// dropUnsubscribed has a member that is letting go of partitions let go of those too
// that it does not subscribe to any more, without waiting for a new target.
func (g *Group) dropUnsubscribed(x *kind.Step, mem *Member, now *modern.Current) {
	wants := g.wants(mem, x.Image)
	kept := make([]modern.Held, 0, len(now.Assigned))
	var dropped []modern.Held
	for _, p := range now.Assigned {
		if wants(p.Topic) {
			kept = append(kept, p)
		} else {
			dropped = append(dropped, p)
		}
	}
	if len(dropped) > 0 {
		now.Assigned, now.Pending = kept, modern.Merged(now.Pending, dropped)
	}
}

// advance compares what a member has with what it is to have.
func (g *Group) advance(x *kind.Step, mem *Member, now *modern.Current, b Beat) {
	kept, surplus, missing := modern.Split(now.Assigned, g.wanted(mem, x.Image))
	if len(surplus) > 0 && b.stillOwns(surplus) {
		now.State, now.Assigned, now.Pending = modern.Unrevoked, kept, surplus
		return
	}
	var granted []modern.Held
	now.State, now.Pending = modern.Stable, nil
	for _, p := range missing {
		if g.isFree(p, mem) {
			granted = append(granted, modern.Held{Partition: p, Since: g.TargetEpoch})
		} else {
			now.State = modern.Unreleased
		}
	}
	now.Assigned = modern.Merged(kept, granted)
	if now.Epoch != g.TargetEpoch {
		now.Previous, now.Epoch = now.Epoch, g.TargetEpoch
	}
}

// wants says which topics a member subscribes to.
func (g *Group) wants(mem *Member, image *metadata.Image) func(metadata.TopicID) bool {
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
			_, named := slices.BinarySearch(mem.Says.Topics, t.Name)
			_, matched := slices.BinarySearch(resolved, t.Name)
			wanted = named || matched
		}
		return wanted
	}
}

// wanted is what of its target a member still subscribes to.
func (g *Group) wanted(mem *Member, image *metadata.Image) []modern.Partition {
	wants := g.wants(mem, image)
	out := make([]modern.Partition, 0, len(mem.Target))
	for _, p := range mem.Target {
		if wants(p.Topic) {
			out = append(out, p)
		}
	}
	return out
}

// stillOwns says whether the client has not let go of all of these. One that does not
// say what it has still has what it had.
func (b *Beat) stillOwns(list []modern.Held) bool {
	return !b.tells || slices.ContainsFunc(b.owned, func(p modern.Partition) bool { return modern.Holds(list, p) })
}

// storeCurrent stores where a member has got to. Whoever has to let go of something
// has its rebalance timeout for that, from now on.
func (g *Group) storeCurrent(x *kind.Step, mem *Member, now *modern.Current) {
	if mem.Now().State != now.State {
		mem.told = x.Now
	}
	x.Write(CurrentRecord(g.ID, mem.ID, now))
	if now.State != modern.Unrevoked || mem.Says.Classic != nil { // A classic member must join again, and has that long for it.
		g.stopRevoking(x, mem)
		return
	}
	g.giveTimeToRevoke(x, mem)
}

func (g *Group) giveTimeToRevoke(x *kind.Step, mem *Member) {
	patience := time.Duration(mem.Says.RebalanceTimeoutMillis) * time.Millisecond
	mem.revokeIn = mem.Now().Epoch
	mem.revokeBy = x.Now.Add(patience)
	mem.RevokeSeq = x.Arm(MemberTimer(kind.TimerRevoke, g, mem), mem.revokeBy)
}

func (g *Group) stopRevoking(x *kind.Step, mem *Member) {
	if mem.RevokeSeq != 0 {
		mem.RevokeSeq = 0
		x.Cancel(MemberTimer(kind.TimerRevoke, g, mem))
	}
}

func MemberTimer(kind string, g *Group, mem *Member) machine.TimerKey {
	return machine.TimerKey{Kind: kind, ID: g.ID, Member: mem.ID}
}

// revokeFired fences a member that has not let go of what it was told to.
func (g *Group) revokeFired(x *kind.Step, e machine.TimerFired) {
	mem := g.Member(e.Key.Member)
	if mem == nil || mem.RevokeSeq != e.Seq {
		return
	}
	mem.RevokeSeq = 0
	if mem.revokeIn == mem.Now().Epoch {
		blameMember(x, journal.TriggerNotRevoked, mem, func(t *journal.Trigger) { t.Revoke, t.At = g.unrevoked(x, mem), g.atConsumer(x, mem) })
		g.fence(x, mem)
	}
}

// touchConsumer notes that a member was heard of.
func (g *Group) touchConsumer(x *kind.Step, mem *Member) {
	g.hear(x, mem)
	g.waitForBeat(x, mem, g.sessionOf(x, mem))
}

// hear notes that a member is not silent any more since the load.
func (g *Group) hear(x *kind.Step, mem *Member) {
	g.heard(mem)
	if mem.silent != 0 {
		mem.silent = 0
		x.EndSilence(&g.Base, mem.ID)
	}
}

// waitForBeat gives a member until d from now to be heard of, as touch does.
func (g *Group) waitForBeat(x *kind.Step, mem *Member, d time.Duration) {
	mem.Deadline = x.Now.Add(d)
	if mem.TimerSeq == 0 || mem.Deadline.Before(mem.TimerAt) {
		mem.TimerAt = g.SessionTimer(mem.ID, mem.silent, g.sessionOf(x, mem), mem.Deadline)
		mem.TimerSeq = x.Arm(MemberTimer(kind.TimerSession, g, mem), mem.TimerAt)
	}
}

// consumerSilent fences a member that was not heard of.
func (g *Group) consumerSilent(x *kind.Step, e machine.TimerFired) {
	mem := g.Member(e.Key.Member)
	switch {
	case mem == nil || mem.TimerSeq != e.Seq:
	case x.Now.Before(mem.Deadline):
		session := g.sessionOf(x, mem)
		x.NoteSilence(&g.Base, mem.ID, mem.silent, session)
		mem.TimerAt = g.SessionTimer(mem.ID, mem.silent, session, mem.Deadline)
		mem.TimerSeq = x.Arm(e.Key, mem.TimerAt)
	default:
		mem.TimerSeq = 0
		blameMember(x, journal.TriggerExpired, mem, func(t *journal.Trigger) {
			t.At = g.atConsumer(x, mem)
			if t.Silent = g.sessionOf(x, mem); mem.Now().State == modern.Unrevoked {
				t.Revoke = g.unrevoked(x, mem)
			}
		})
		g.fence(x, mem)
	}
}
