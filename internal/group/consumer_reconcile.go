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
func (x *step) reconcile(g *consumerGroup, mem *consumerMember, b beat) {
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
		x.advance(g, mem, &now, b)
	case b.unsubscribed:
		x.dropUnsubscribed(g, mem, &now)
	}
	if mem.current == nil || !now.same(mem.current) {
		x.storeCurrent(g, mem, &now)
	}
}

// dropUnsubscribed has a member that is letting go of partitions let go of those too
// that it does not subscribe to any more, without waiting for a new target.
func (x *step) dropUnsubscribed(c *consumerGroup, mem *consumerMember, now *consumerNow) {
	wants := c.wants(mem, x.image)
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
func (x *step) advance(c *consumerGroup, mem *consumerMember, now *consumerNow, b beat) {
	kept, surplus, missing := split(now.assigned, c.wanted(mem, x.image))
	if len(surplus) > 0 && b.stillOwns(surplus) {
		now.state, now.assigned, now.pending = memberUnrevoked, kept, surplus
		return
	}
	var granted []heldPart
	now.state, now.pending = memberStable, nil
	for _, p := range missing {
		if c.isFree(p, mem) {
			granted = append(granted, heldPart{p, c.targetEpoch})
		} else {
			now.state = memberUnreleased
		}
	}
	now.assigned = merged(kept, granted)
	if now.epoch != c.targetEpoch {
		now.previous, now.epoch = now.epoch, c.targetEpoch
	}
}

// wants says which topics a member subscribes to.
func (c *consumerGroup) wants(mem *consumerMember, image *metadata.Image) func(metadata.TopicID) bool {
	var resolved []string
	if r := c.regexes[mem.pattern()]; r != nil {
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
func (c *consumerGroup) wanted(mem *consumerMember, image *metadata.Image) []part {
	wants := c.wants(mem, image)
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

func (n *consumerNow) same(o *consumerNow) bool {
	return n.epoch == o.epoch && n.previous == o.previous && n.state == o.state && slices.Equal(n.assigned, o.assigned) && slices.Equal(n.pending, o.pending)
}

// storeCurrent stores where a member has got to. Whoever has to let go of something
// has its rebalance timeout for that, from now on.
func (x *step) storeCurrent(g *consumerGroup, mem *consumerMember, now *consumerNow) {
	if mem.now().state != now.state {
		mem.told = x.now
	}
	x.write(currentRecord(g.id, mem.id, now))
	if now.state != memberUnrevoked || mem.says.Classic != nil { // A classic member must join again, and has that long for it.
		x.stopRevoking(g, mem)
		return
	}
	x.giveTimeToRevoke(g, mem)
}

func (x *step) giveTimeToRevoke(g *consumerGroup, mem *consumerMember) {
	patience := time.Duration(mem.says.RebalanceTimeoutMillis) * time.Millisecond
	mem.revokeIn = mem.now().epoch
	mem.revokeBy = x.now.Add(patience)
	mem.revokeSeq = x.arm(memberTimer(TimerRevoke, g, mem), mem.revokeBy)
}

func (x *step) stopRevoking(g *consumerGroup, mem *consumerMember) {
	if mem.revokeSeq != 0 {
		mem.revokeSeq = 0
		x.cancel(memberTimer(TimerRevoke, g, mem))
	}
}

func memberTimer(kind string, g *consumerGroup, mem *consumerMember) machine.TimerKey {
	return machine.TimerKey{Kind: kind, ID: g.id, Member: mem.id}
}

// revokeFired fences a member that has not let go of what it was told to.
func (x *step) revokeFired(g *consumerGroup, e machine.TimerFired) {
	mem := g.member(e.Key.Member)
	if mem == nil || mem.revokeSeq != e.Seq {
		return
	}
	mem.revokeSeq = 0
	if mem.revokeIn == mem.now().epoch {
		x.blameMember(journal.TriggerNotRevoked, mem, func(t *journal.Trigger) { t.Revoke, t.At = x.unrevoked(g, mem), x.atConsumer(g, mem) })
		x.fence(g, mem)
	}
}

// touchConsumer notes that a member was heard of.
func (x *step) touchConsumer(g *consumerGroup, mem *consumerMember) {
	x.hear(g, mem)
	x.waitForBeat(g, mem, x.sessionOf(g, mem))
}

// hear notes that a member is not silent any more since the load.
func (x *step) hear(g *consumerGroup, mem *consumerMember) {
	g.heard(mem)
	if mem.silent != 0 {
		mem.silent = 0
		x.endSilence(&g.base, mem.id)
	}
}

// waitForBeat gives a member until d from now to be heard of, as touch does.
func (x *step) waitForBeat(g *consumerGroup, mem *consumerMember, d time.Duration) {
	mem.deadline = x.now.Add(d)
	if mem.timerSeq == 0 || mem.deadline.Before(mem.timerAt) {
		mem.timerAt = g.sessionTimer(mem.id, mem.silent, x.sessionOf(g, mem), mem.deadline)
		mem.timerSeq = x.arm(memberTimer(TimerSession, g, mem), mem.timerAt)
	}
}

// consumerSilent fences a member that was not heard of.
func (x *step) consumerSilent(g *consumerGroup, e machine.TimerFired) {
	mem := g.member(e.Key.Member)
	switch {
	case mem == nil || mem.timerSeq != e.Seq:
	case x.now.Before(mem.deadline):
		session := x.sessionOf(g, mem)
		x.noteSilence(&g.base, mem.id, mem.silent, session)
		mem.timerAt = g.sessionTimer(mem.id, mem.silent, session, mem.deadline)
		mem.timerSeq = x.arm(e.Key, mem.timerAt)
	default:
		mem.timerSeq = 0
		x.blameMember(journal.TriggerExpired, mem, func(t *journal.Trigger) {
			t.At = x.atConsumer(g, mem)
			if t.Silent = x.sessionOf(g, mem); mem.now().state == memberUnrevoked {
				t.Revoke = x.unrevoked(g, mem)
			}
		})
		x.fence(g, mem)
	}
}
