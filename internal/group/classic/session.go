package classic

import (
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/kind"
	"muster/internal/journal"
	"muster/internal/machine"
)

// heartbeat handles Heartbeat: a member is heard of, and told if it must join
// again.
func heartbeat(x *kind.Step, r *machine.Request, m *kmsg.HeartbeatRequest) {
	resp := kmsg.NewPtrHeartbeatResponse()
	resp.Version = m.Version
	if err := memberHeartbeat(x, r, m); err != nil {
		resp.ErrorCode = err.Code
	}
	x.Reply(r.ID, resp)
}

// memberHeartbeat notes that a member was heard of.
func memberHeartbeat(x *kind.Step, r *machine.Request, m *kmsg.HeartbeatRequest) *kerr.Error {
	if m.Group == "" {
		return kerr.InvalidGroupID
	}
	if h, ok := x.Groups[m.Group].(Host); ok {
		return h.HeartbeatClassic(x, m)
	}
	g, ok := x.Groups[m.Group].(*Group)
	if !ok {
		return kerr.UnknownMemberID
	}
	mem, err := g.lookup(x, r, m.MemberID, m.InstanceID)
	switch {
	case err != nil:
		return err
	case m.Generation != g.Generation:
		return kerr.IllegalGeneration
	}
	g.noteHeard(x, mem)
	switch g.State {
	case PreparingRebalance:
		g.touch(x, mem, mem.Session)
		return kerr.RebalanceInProgress
	case CompletingRebalance, Stable:
		// A member may beat between its join and its sync.
		g.touch(x, mem, mem.Session)
		return nil
	}
	return kerr.UnknownMemberID
}

// touch gives a member until d from now to be heard of. The timer is left alone
// as long as it does not fire later than that: when it fires early, it is armed
// again for what remains. So a heartbeat costs no timer.
func (g *Group) touch(x *kind.Step, m *Member, d time.Duration) {
	m.Deadline = x.Now.Add(d)
	if m.TimerSeq == 0 || m.Deadline.Before(m.TimerAt) {
		g.rearm(x, m, d)
	}
}

func (g *Group) rearm(x *kind.Step, m *Member, d time.Duration) {
	m.Deadline = x.Now.Add(d)
	m.TimerAt = x.SessionTimer(&g.Base, m.ID, m.Silent, m.Session, m.Deadline)
	m.TimerSeq = x.Arm(SessionKey(g, m.ID), m.TimerAt)
}

// sessionFired handles the session timer of a member or of a pending one.
func (g *Group) sessionFired(x *kind.Step, e machine.TimerFired) {
	if p := g.Pending[e.Key.Member]; p != nil && p.Seq == e.Seq {
		if g.State == PreparingRebalance && g.Previous != Empty {
			g.Rebalance.gone.add(p.absent(e.Key.Member))
		}
		g.removePending(e.Key.Member)
		g.expiredComplete(x)
		return
	}
	m := g.Members.Get(e.Key.Member)
	switch {
	case m == nil || m.TimerSeq != e.Seq:
		return
	case x.Now.Before(m.Deadline):
		x.NoteSilence(&g.Base, m.ID, m.Silent, m.Session)
		m.TimerAt = x.SessionTimer(&g.Base, m.ID, m.Silent, m.Session, m.Deadline)
		m.TimerSeq = x.Arm(e.Key, m.TimerAt)
		return
	case !m.IsNew && (m.Join != 0 || m.Sync != 0):
		// Parked, it cannot beat. The rebalance's own timers look after it.
		g.rearm(x, m, m.Session)
		return
	}
	why := Trigger(journal.TriggerExpired, m, nil)
	why.Silent, why.At = m.Session, g.positions(x, m)
	if m.IsNew {
		why.Silent, why.New = x.Now.Sub(time.UnixMilli(m.JoinedAt)), true
	}
	g.drop(x, m)
	if g.State == PreparingRebalance {
		g.Rebalance.Add(why)
		g.expiredComplete(x)
		return
	}
	g.rebalanceOrComplete(x, why)
}

// expiredComplete ends the join phase if only the member that has expired was
// missing, even during the initial delay.
func (g *Group) expiredComplete(x *kind.Step) {
	if g.State == PreparingRebalance && g.allJoined() {
		g.completeJoin(x)
	}
}

// newMemberTimeout is how long a new member may be parked in JoinGroup. It
// cannot send heartbeats, since it does not know its id, and a client that gave
// up and tried again would leave a dead member behind each time.
const newMemberTimeout = 5 * time.Minute
