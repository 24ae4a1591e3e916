package classic

import (
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/group/kind"
	"muster/internal/journal"
	"muster/internal/machine"
)

// rebalanceOrComplete reacts to a change of membership: it starts a rebalance,
// or if one is under way sees whether everybody is there now.
func (g *Group) rebalanceOrComplete(x *kind.Step, why journal.Trigger) {
	if g.State != PreparingRebalance {
		g.PrepareRebalance(x, why)
		return
	}
	g.Rebalance.Add(why)
	g.maybeComplete(x)
}

// PrepareRebalance begins the join phase. From Empty it lasts for the
// initial delay; otherwise until everybody has joined again.
func (g *Group) PrepareRebalance(x *kind.Step, why ...journal.Trigger) {
	if g.State == CompletingRebalance {
		g.failSyncs(x, kerr.RebalanceInProgress)
	}
	g.CancelSync(x)
	for m := g.Members.First; m != nil; m = m.Next {
		g.noteSynced(m)
	}
	initial := g.State == Empty
	g.Reset = nil
	g.beginRebalance(x.Now, why)
	g.changeState(PreparingRebalance, x.Now)
	g.noteStarted(x, why)
	g.flushLater(x)
	if !initial {
		g.completeOrWait(x)
		return
	}
	g.newMember = false
	g.Rebalance.delay = x.Cfg.InitialDelay
	g.Rebalance.remaining = max(g.rebalanceTimeout()-g.Rebalance.delay, 0)
	g.JoinSeq = x.Arm(JoinKey(g), x.Now.Add(g.Rebalance.delay))
}

func JoinKey(g *Group) machine.TimerKey { return machine.TimerKey{Kind: kind.TimerJoin, ID: g.ID} }
func SyncKey(g *Group) machine.TimerKey { return machine.TimerKey{Kind: kind.TimerSync, ID: g.ID} }

// allJoined says that no one has to be waited for. Pending members are waited
// for: they have said that they are coming.
func (g *Group) allJoined() bool {
	return int(g.Joined) == g.Members.Len() && len(g.Pending) == 0
}

func (g *Group) completeOrWait(x *kind.Step) {
	if g.allJoined() {
		g.completeJoin(x)
		return
	}
	g.JoinSeq = x.Arm(JoinKey(g), x.Now.Add(g.remainingTimeout(g.rebalanceTimeout())))
}

// maybeComplete ends the join phase if everybody is there, except that joins
// and leaves do not cut the initial delay short.
func (g *Group) maybeComplete(x *kind.Step) {
	if g.State == PreparingRebalance && g.Previous != Empty && g.allJoined() {
		g.completeJoin(x)
	}
}

// joinFired handles the end of the initial delay, which is extended while
// members keep coming, or of the rebalance timeout.
func (g *Group) joinFired(x *kind.Step) {
	g.JoinSeq = 0
	if g.State != PreparingRebalance {
		return
	}
	if g.Previous == Empty && g.newMember && g.Rebalance.remaining > 0 {
		g.newMember = false
		delay := min(x.Cfg.InitialDelay, g.Rebalance.remaining)
		g.Rebalance.remaining = max(g.Rebalance.remaining-g.Rebalance.delay, 0)
		g.Rebalance.delay = delay
		g.JoinSeq = x.Arm(JoinKey(g), x.Now.Add(delay))
		return
	}
	g.completeJoin(x)
}

// minWaitAgain keeps a join phase that goes on from doing so without a pause: a
// client may have said that its rebalance timeout is nothing.
const minWaitAgain = time.Second

// completeJoin ends the join phase: members that have not joined are out, unless
// they are static, and the rest form the next generation.
func (g *Group) completeJoin(x *kind.Step) {
	if g.JoinSeq != 0 {
		g.JoinSeq = 0
		x.Cancel(JoinKey(g))
	}
	for m := g.Members.First; m != nil; m = m.Next {
		if m.Join == 0 && m.Instance == nil {
			g.Rebalance.gone.add(journal.Absent{Who: m.Who()})
			g.drop(x, m)
		}
	}
	if g.Members.Len() > 0 && !g.electJoined() {
		// Only static members that have not come back: wait for them, or for
		// their sessions to end.
		g.JoinSeq = x.Arm(JoinKey(g), x.Now.Add(max(g.rebalanceTimeout(), minWaitAgain)))
		return
	}
	g.NextGeneration(x)
	g.Rebalance.joined(g, x.Now)
	if g.Members.Len() == 0 {
		g.becomeEmpty(x)
		return
	}
	g.Protocol = g.Vote()
	g.noteHeld(x)
	g.changeState(CompletingRebalance, x.Now)
	g.answerJoins(x)
	g.SyncSeq = x.Arm(SyncKey(g), x.Now.Add(g.rebalanceTimeout()))
}

// electJoined makes sure that the leader has joined; false says that no one
// has.
func (g *Group) electJoined() bool {
	if leader := g.Members.Get(g.Leader); leader != nil && leader.Join != 0 {
		return true
	}
	for m := g.Members.First; m != nil; m = m.Next {
		if m.Join != 0 {
			g.Leader = m.ID
			return true
		}
	}
	return false
}

func (g *Group) becomeEmpty(x *kind.Step) {
	g.Protocol, g.Leader = "", ""
	g.changeState(Empty, x.Now)
	g.noteSettled(x)
	if g.Live != nil {
		g.Live.Held = false // By no one.
	}
	g.storeGeneration(x, g.Record())
}

// answerJoins tells everybody who is parked of the new generation. Static
// members that did not join remain members until the sync timer ends their grace.
func (g *Group) answerJoins(x *kind.Step) {
	for m := g.Members.First; m != nil; m = m.Next {
		if m.Join != 0 {
			g.replyJoin(x, m, m.Join, m.JoinVersion)
			m.Join = 0
		}
		m.IsNew = false
		g.touch(x, m, m.Session)
		m.Unsynced = true
	}
	g.Joined, g.Unsynced = 0, int32(g.Members.Len())
}

// drop removes a member and answers what it has parked.
func (g *Group) drop(x *kind.Step, m *Member) {
	if m.Join != 0 {
		ReplyJoinError(x, m.Join, m.JoinVersion, "", kerr.UnknownMemberID)
	}
	if m.Sync != 0 {
		ReplySyncError(x, m.Sync, m.SyncVersion, kerr.UnknownMemberID)
	}
	x.Cancel(SessionKey(g, m.ID))
	x.EndSilence(&g.Base, m.ID)
	g.remove(m)
	m.Join, m.Sync = 0, 0
	g.noteDeparture(x, m)
	g.flushLater(x)
}

// NextGeneration gives a generation that is formed its number.
func (g *Group) NextGeneration(x *kind.Step) {
	if !g.FirstAfterLoad {
		g.Generation = kind.After(g.Generation)
		return
	}
	g.FirstAfterLoad = false
	g.Generation = kind.NextAfterLoad(g.Generation, x.Epoch, g.priorLoads)
}
