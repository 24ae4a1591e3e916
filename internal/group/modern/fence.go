package modern

import (
	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/group/kind"
	"muster/internal/journal"
	"muster/internal/machine"
)

// Leave handles a heartbeat by which a member leaves. A static one may leave
// for a while: no one else gets what it has until its session is over.
func (g *Group[P, M]) Leave(x *kind.Step, r *machine.Request, c Claim) *Refusal {
	var none M
	m := g.Member(c.Member)
	if c.Instance != nil {
		if m = g.Instances[*c.Instance]; m != none && m.Common().ID != c.Member {
			return Refused(kerr.FencedInstanceID, "Instance "+*c.Instance+" is owned by member "+m.Common().ID+".")
		}
	}
	switch {
	case m == none:
		return Refused(kerr.UnknownMemberID, "Member "+c.Member+" is not a member of group "+g.ID+".")
	case c.Epoch == EpochLeaveStatic:
		g.leaveForAWhile(x, m)
	default:
		g.AddLeaveTrigger(x, r, m)
		g.Fence(x, m)
	}
	return nil
}

func (g *Group[P, M]) leaveForAWhile(x *kind.Step, m M) {
	mem := m.Common()
	now := mem.Now()
	if now.Epoch == EpochLeaveStatic {
		return
	}
	next := Current[P]{Epoch: EpochLeaveStatic, Previous: now.Epoch, Assigned: AtEpochZero(now.Assigned)}
	x.Write(g.own.CurrentRecord(mem.ID, &next))
	g.clearUnheard(mem)
	if mem.Silent != 0 { // It has a whole session timeout, as if it had been heard of before.
		g.Touch(x, m)
	}
	mem.StopRevoking(x, g.ID)
	g.unpark(x, m, Refused(kerr.FencedMemberEpoch, "The member has left the group."))
}

// Fence removes a member, and has the others share what it had.
func (g *Group[P, M]) Fence(x *kind.Step, m M) {
	if !g.own.Converts(x, m) {
		g.evict(x, m)
	}
}

// evict is the same in a group that stays one of its kind.
func (g *Group[P, M]) evict(x *kind.Step, m M) {
	x.From = len(x.Records)
	g.removeMember(x, m)
	if g.Gone { // There was no other record: a load has found no more.
		g.CancelRun(x)
		x.Why = nil
		return
	}
	g.own.Forget(x)
	g.raiseEpoch(x, g.CheckTopics(x))
	if g.Present == 0 { // There is nothing to assign, and no one who would come to have it done. That is no run of the assignor.
		x.Write(g.own.TargetEpochRecord(&TargetEpoch{Epoch: g.Epoch, At: g.TargetAt}))
		g.CancelRun(x)
		g.noteSettled(x)
	}
}

// EvictConflict removes a member that has what is another's, which a load has found.
func (g *Group[P, M]) EvictConflict(x *kind.Step, m M) {
	AddMemberTrigger(x, journal.TriggerConflict, m, nil)
	g.evict(x, m)
}

// removeMember removes a member, and whatever waits for it or that it waits for.
func (g *Group[P, M]) removeMember(x *kind.Step, m M) {
	mem := m.Common()
	g.unpark(x, m, Refused(kerr.UnknownMemberID, "Member "+mem.ID+" is not a member of group "+g.ID+" any more."))
	g.StopWaiting(x, m)
	g.clearUnheard(mem)
	x.EndSilence(&g.Base, mem.ID)
	g.removeRecords(x, m)
}

// StopWaiting cancels all timers of a member.
func (g *Group[P, M]) StopWaiting(x *kind.Step, m M) {
	g.own.StopTimers(x, m)
	m.Common().Stop(x, g.ID)
}

// Fired handles the timers that groups of all these kinds have.
func (g *Group[P, M]) Fired(x *kind.Step, e machine.TimerFired) {
	var none M
	m := g.Member(e.Key.Member)
	switch {
	case m == none:
	case e.Key.Kind == kind.TimerSession:
		g.sessionFired(x, m, e)
	case e.Key.Kind == kind.TimerRevoke:
		g.revokeFired(x, m, e)
	}
}

// revokeFired fences a member that has not let go of what it was told to.
func (g *Group[P, M]) revokeFired(x *kind.Step, m M, e machine.TimerFired) {
	if m.Common().RevokeFired(e) {
		AddMemberTrigger(x, journal.TriggerNotRevoked, m, func(t *journal.Trigger) {
			t.Revoke, t.At = g.own.Unrevoked(x, m), g.own.Positions(x, m)
		})
		g.Fence(x, m)
	}
}

// sessionFired fences a member that was not heard of.
func (g *Group[P, M]) sessionFired(x *kind.Step, m M, e machine.TimerFired) {
	session := g.own.Session(x, m)
	if !m.Common().SessionFired(x, &g.Base, e, session) {
		return
	}
	AddMemberTrigger(x, journal.TriggerExpired, m, func(t *journal.Trigger) {
		t.At = g.own.Positions(x, m)
		if t.Silent = session; m.Common().Now().State == Unrevoked {
			t.Revoke = g.own.Unrevoked(x, m)
		}
	})
	g.Fence(x, m)
}
