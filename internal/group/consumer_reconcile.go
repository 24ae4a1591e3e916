package group

import (
	"slices"
	"time"

	"muster/internal/journal"
	"muster/internal/machine"
	"muster/internal/metadata"
)

// reconcile brings a member nearer to its target: first it lets go of what it is not
// to have any more, and says so; then it gets what others have let go of.
func (g *consumerGroup) reconcile(x *step, mem *consumerMember, b beat) {
	if at := mem.current; at != nil && at.state == memberStable && at.epoch == g.targetEpoch && !b.unsubscribed {
		return
	}
	now := mem.now()
	if now.epoch < 0 { // A static member is back.
		now.epoch, now.previous = epochJoin, epochJoin
	}
	holdsOn := now.state == memberUnrevoked && b.stillOwns(now.pending)
	switch {
	case !holdsOn:
		g.advance(x, mem, &now, b)
	case b.unsubscribed:
		g.dropUnsubscribed(x, mem, &now)
	}
	if mem.current == nil || !now.same(mem.current) {
		g.storeCurrent(x, mem, &now)
	}
}

// dropUnsubscribed has a member that is letting go of partitions let go of those too
// that it does not subscribe to any more, without waiting for a new target.
func (g *consumerGroup) dropUnsubscribed(x *step, mem *consumerMember, now *consumerNow) {
	wants := g.wants(mem, x.image)
	kept := make([]heldPart, 0, len(now.assigned))
	var dropped []heldPart
	for _, p := range now.assigned {
		if wants(p.topic) {
			kept = append(kept, p)
		} else {
			dropped = append(dropped, p)
		}
	}
	if len(dropped) > 0 {
		now.assigned, now.pending = kept, merged(now.pending, dropped)
	}
}

// advance compares what a member has with what it is to have.
func (g *consumerGroup) advance(x *step, mem *consumerMember, now *consumerNow, b beat) {
	kept, surplus, missing := split(now.assigned, g.wanted(mem, x.image))
	if len(surplus) > 0 && b.stillOwns(surplus) {
		now.state, now.assigned, now.pending = memberUnrevoked, kept, surplus
		return
	}
	var granted []heldPart
	now.state, now.pending = memberStable, nil
	for _, p := range missing {
		if g.isFree(p, mem) {
			granted = append(granted, heldPart{p, g.targetEpoch})
		} else {
			now.state = memberUnreleased
		}
	}
	now.assigned = merged(kept, granted)
	if now.epoch != g.targetEpoch {
		now.previous, now.epoch = now.epoch, g.targetEpoch
	}
}

// wants says which topics a member subscribes to.
func (g *consumerGroup) wants(mem *consumerMember, image *metadata.Image) func(metadata.TopicID) bool {
	var resolved []string
	if r := g.regexes[mem.pattern()]; r != nil {
		resolved = r.topics
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
			_, named := slices.BinarySearch(mem.says.Topics, t.Name)
			_, matched := slices.BinarySearch(resolved, t.Name)
			wanted = named || matched
		}
		return wanted
	}
}

// wanted is what of its target a member still subscribes to.
func (g *consumerGroup) wanted(mem *consumerMember, image *metadata.Image) []part {
	wants := g.wants(mem, image)
	out := make([]part, 0, len(mem.target))
	for _, p := range mem.target {
		if wants(p.topic) {
			out = append(out, p)
		}
	}
	return out
}

// stillOwns says whether the client has not let go of all of these. One that does not
// say what it has still has what it had.
func (b *beat) stillOwns(list []heldPart) bool {
	return !b.tells || slices.ContainsFunc(b.owned, func(p part) bool { return holds(list, p) })
}

// storeCurrent stores where a member has got to. Whoever has to let go of something
// has its rebalance timeout for that, from now on.
func (g *consumerGroup) storeCurrent(x *step, mem *consumerMember, now *consumerNow) {
	if mem.now().state != now.state {
		mem.told = x.now
	}
	x.write(currentRecord(g.id, mem.id, now))
	if now.state != memberUnrevoked || mem.says.Classic != nil { // A classic member must join again, and has that long for it.
		g.stopRevoking(x, mem)
		return
	}
	g.giveTimeToRevoke(x, mem)
}

func (g *consumerGroup) giveTimeToRevoke(x *step, mem *consumerMember) {
	patience := time.Duration(mem.says.RebalanceTimeoutMillis) * time.Millisecond
	mem.revokeIn = mem.now().epoch
	mem.revokeBy = x.now.Add(patience)
	mem.revokeSeq = x.arm(memberTimer(TimerRevoke, g, mem), mem.revokeBy)
}

func (g *consumerGroup) stopRevoking(x *step, mem *consumerMember) {
	if mem.revokeSeq != 0 {
		mem.revokeSeq = 0
		x.cancel(memberTimer(TimerRevoke, g, mem))
	}
}

func memberTimer(kind string, g *consumerGroup, mem *consumerMember) machine.TimerKey {
	return machine.TimerKey{Kind: kind, ID: g.id, Member: mem.id}
}

// revokeFired fences a member that has not let go of what it was told to.
func (g *consumerGroup) revokeFired(x *step, e machine.TimerFired) {
	mem := g.member(e.Key.Member)
	if mem == nil || mem.revokeSeq != e.Seq {
		return
	}
	mem.revokeSeq = 0
	if mem.revokeIn == mem.now().epoch {
		blameMember(x, journal.TriggerNotRevoked, mem, func(t *journal.Trigger) { t.Revoke, t.At = g.unrevoked(x, mem), g.atConsumer(x, mem) })
		g.fence(x, mem)
	}
}

// touchConsumer notes that a member was heard of.
func (g *consumerGroup) touchConsumer(x *step, mem *consumerMember) {
	g.hear(x, mem)
	g.waitForBeat(x, mem, g.sessionOf(x, mem))
}

// hear notes that a member is not silent any more since the load.
func (g *consumerGroup) hear(x *step, mem *consumerMember) {
	g.heard(mem)
	if mem.silent != 0 {
		mem.silent = 0
		x.endSilence(&g.base, mem.id)
	}
}

// waitForBeat gives a member until d from now to be heard of, as touch does.
func (g *consumerGroup) waitForBeat(x *step, mem *consumerMember, d time.Duration) {
	mem.deadline = x.now.Add(d)
	if mem.timerSeq == 0 || mem.deadline.Before(mem.timerAt) {
		mem.timerAt = g.sessionTimer(mem.id, mem.silent, g.sessionOf(x, mem), mem.deadline)
		mem.timerSeq = x.arm(memberTimer(TimerSession, g, mem), mem.timerAt)
	}
}

// consumerSilent fences a member that was not heard of.
func (g *consumerGroup) consumerSilent(x *step, e machine.TimerFired) {
	mem := g.member(e.Key.Member)
	switch {
	case mem == nil || mem.timerSeq != e.Seq:
	case x.now.Before(mem.deadline):
		session := g.sessionOf(x, mem)
		x.noteSilence(&g.base, mem.id, mem.silent, session)
		mem.timerAt = g.sessionTimer(mem.id, mem.silent, session, mem.deadline)
		mem.timerSeq = x.arm(e.Key, mem.timerAt)
	default:
		mem.timerSeq = 0
		blameMember(x, journal.TriggerExpired, mem, func(t *journal.Trigger) {
			t.At = g.atConsumer(x, mem)
			if t.Silent = g.sessionOf(x, mem); mem.now().state == memberUnrevoked {
				t.Revoke = g.unrevoked(x, mem)
			}
		})
		g.fence(x, mem)
	}
}
