package group

import (
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/journal"
	"muster/internal/machine"
)

// rebalanceOrComplete reacts to a change of membership: it starts a rebalance,
// or if one is under way sees whether everybody is there now.
func (g *classicGroup) rebalanceOrComplete(x *step, why journal.Trigger) {
	if g.state != PreparingRebalance {
		g.prepareRebalance(x, why)
		return
	}
	g.rebalance.add(why)
	g.maybeComplete(x)
}

// prepareRebalance begins the join phase. From Empty it lasts for the
// initial delay; otherwise until everybody has joined again.
func (g *classicGroup) prepareRebalance(x *step, why ...journal.Trigger) {
	if g.state == CompletingRebalance {
		g.failSyncs(x, kerr.RebalanceInProgress)
	}
	g.cancelSync(x)
	for m := g.members.first; m != nil; m = m.next {
		g.sync(m)
	}
	initial := g.state == Empty
	g.reset = nil
	g.beginRebalance(x.now, why)
	g.to(PreparingRebalance, x.now)
	g.start(x, why)
	g.unsettled(x)
	if !initial {
		g.completeOrWait(x)
		return
	}
	g.newMember = false
	g.rebalance.delay = x.cfg.InitialDelay
	g.rebalance.remaining = max(g.rebalanceTimeout()-g.rebalance.delay, 0)
	g.joinSeq = x.arm(joinKey(g), x.now.Add(g.rebalance.delay))
}

func joinKey(g *classicGroup) machine.TimerKey { return machine.TimerKey{Kind: TimerJoin, ID: g.id} }
func syncKey(g *classicGroup) machine.TimerKey { return machine.TimerKey{Kind: TimerSync, ID: g.id} }

// allJoined says that nobody has to be waited for. Pending members are waited
// for: they have said that they are coming.
func (g *classicGroup) allJoined() bool {
	return int(g.joined) == g.members.len() && len(g.pending) == 0
}

func (g *classicGroup) completeOrWait(x *step) {
	if g.allJoined() {
		g.completeJoin(x)
		return
	}
	g.joinSeq = x.arm(joinKey(g), x.now.Add(g.patience(g.rebalanceTimeout())))
}

// maybeComplete ends the join phase if everybody is there, except that joins
// and leaves do not cut the initial delay short.
func (g *classicGroup) maybeComplete(x *step) {
	if g.state == PreparingRebalance && g.previous != Empty && g.allJoined() {
		g.completeJoin(x)
	}
}

// joinFired handles the end of the initial delay, which is extended while
// members keep coming, or of the rebalance timeout.
func (g *classicGroup) joinFired(x *step) {
	g.joinSeq = 0
	if g.state != PreparingRebalance {
		return
	}
	if g.previous == Empty && g.newMember && g.rebalance.remaining > 0 {
		g.newMember = false
		delay := min(x.cfg.InitialDelay, g.rebalance.remaining)
		g.rebalance.remaining = max(g.rebalance.remaining-g.rebalance.delay, 0)
		g.rebalance.delay = delay
		g.joinSeq = x.arm(joinKey(g), x.now.Add(delay))
		return
	}
	g.completeJoin(x)
}

// minWaitAgain keeps a join phase that goes on from doing so without a pause: a
// client may have said that its rebalance timeout is nothing.
const minWaitAgain = time.Second

// completeJoin ends the join phase: members that have not joined are out, unless
// they are static, and the rest form the next generation.
func (g *classicGroup) completeJoin(x *step) {
	if g.joinSeq != 0 {
		g.joinSeq = 0
		x.cancel(joinKey(g))
	}
	for m := g.members.first; m != nil; m = m.next {
		if m.join == 0 && m.instance == nil {
			g.rebalance.gone.add(journal.Absent{Who: m.who()})
			g.drop(x, m)
		}
	}
	if g.members.len() > 0 && !g.electJoined() {
		// Only static members that have not come back: wait for them, or for
		// their sessions to end.
		g.joinSeq = x.arm(joinKey(g), x.now.Add(max(g.rebalanceTimeout(), minWaitAgain)))
		return
	}
	g.nextGeneration(x)
	g.rebalance.joined(g, x.now)
	if g.members.len() == 0 {
		g.becomeEmpty(x)
		return
	}
	g.protocol = g.vote()
	g.to(CompletingRebalance, x.now)
	g.answerJoins(x)
	g.syncSeq = x.arm(syncKey(g), x.now.Add(g.rebalanceTimeout()))
}

// electJoined makes sure that the leader has joined; false says that nobody
// has.
func (g *classicGroup) electJoined() bool {
	if leader := g.members.get(g.leader); leader != nil && leader.join != 0 {
		return true
	}
	for m := g.members.first; m != nil; m = m.next {
		if m.join != 0 {
			g.leader = m.id
			return true
		}
	}
	return false
}

func (g *classicGroup) becomeEmpty(x *step) {
	g.protocol, g.leader = "", ""
	g.to(Empty, x.now)
	g.settle(x)
	g.store(x, g.record())
}

// answerJoins tells everybody who is parked of the new generation. Static
// members that did not join remain members until the sync timer ends their grace.
func (g *classicGroup) answerJoins(x *step) {
	for m := g.members.first; m != nil; m = m.next {
		if m.join != 0 {
			g.replyJoin(x, m, m.join, m.joinVersion)
			m.join = 0
		}
		m.isNew = false
		g.touch(x, m, m.session)
		m.unsynced = true
	}
	g.joined, g.unsynced = 0, int32(g.members.len())
}

// drop removes a member and answers what it has parked.
func (g *classicGroup) drop(x *step, m *member) {
	if m.join != 0 {
		replyJoinError(x, m.join, m.joinVersion, "", kerr.UnknownMemberID)
	}
	if m.sync != 0 {
		replySyncError(x, m.sync, m.syncVersion, kerr.UnknownMemberID)
	}
	x.cancel(sessionKey(g, m.id))
	x.endSilence(&g.base, m.id)
	g.remove(m)
	m.join, m.sync = 0, 0
	g.leaves(x, m)
	g.unsettled(x)
}

// nextGeneration gives a generation that is formed its number.
func (g *classicGroup) nextGeneration(x *step) {
	if !g.leaps {
		g.generation = after(g.generation)
		return
	}
	g.leaps = false
	g.generation = leap(g.generation, x.epoch, g.lives)
}
