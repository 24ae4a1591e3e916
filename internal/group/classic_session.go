package group

import (
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/journal"
	"muster/internal/machine"
)

// heartbeat handles Heartbeat: a member is heard of, and told if it must join
// again.
func heartbeat(x *step, r *machine.Request, m *kmsg.HeartbeatRequest) {
	resp := kmsg.NewPtrHeartbeatResponse()
	resp.Version = m.Version
	if err := memberHeartbeat(x, r, m); err != nil {
		resp.ErrorCode = err.Code
	}
	x.reply(r.ID, resp)
}

// memberHeartbeat notes that a member was heard of.
func memberHeartbeat(x *step, r *machine.Request, m *kmsg.HeartbeatRequest) *kerr.Error {
	if m.Group == "" {
		return kerr.InvalidGroupID
	}
	if h, ok := x.groups[m.Group].(classicHost); ok {
		return h.heartbeatClassic(x, m)
	}
	g, ok := x.groups[m.Group].(*classicGroup)
	if !ok {
		return kerr.UnknownMemberID
	}
	mem, err := g.lookup(x, r, m.MemberID, m.InstanceID)
	switch {
	case err != nil:
		return err
	case m.Generation != g.generation:
		return kerr.IllegalGeneration
	}
	g.alive(x, mem)
	switch g.state {
	case PreparingRebalance:
		g.touch(x, mem, mem.session)
		return kerr.RebalanceInProgress
	case CompletingRebalance, Stable:
		// A member may beat between its join and its sync.
		g.touch(x, mem, mem.session)
		return nil
	}
	return kerr.UnknownMemberID
}

// touch gives a member until d from now to be heard of. The timer is left alone
// as long as it does not fire later than that: when it fires early, it is armed
// again for what remains. So a heartbeat costs no timer.
func (g *classicGroup) touch(x *step, m *member, d time.Duration) {
	m.deadline = x.now.Add(d)
	if m.timerSeq == 0 || m.deadline.Before(m.timerAt) {
		g.rearm(x, m, d)
	}
}

func (g *classicGroup) rearm(x *step, m *member, d time.Duration) {
	m.deadline = x.now.Add(d)
	m.timerAt = g.sessionTimer(m.id, m.silent, m.session, m.deadline)
	m.timerSeq = x.arm(sessionKey(g, m.id), m.timerAt)
}

// sessionFired handles the session timer of a member or of a pending one.
func (g *classicGroup) sessionFired(x *step, e machine.TimerFired) {
	if p := g.pending[e.Key.Member]; p != nil && p.seq == e.Seq {
		if g.state == PreparingRebalance && g.previous != Empty {
			g.rebalance.gone.add(p.absent(e.Key.Member))
		}
		g.forget(e.Key.Member)
		g.expiredComplete(x)
		return
	}
	m := g.members.get(e.Key.Member)
	switch {
	case m == nil || m.timerSeq != e.Seq:
		return
	case x.now.Before(m.deadline):
		x.noteSilence(&g.base, m.id, m.silent, m.session)
		m.timerAt = g.sessionTimer(m.id, m.silent, m.session, m.deadline)
		m.timerSeq = x.arm(e.Key, m.timerAt)
		return
	case !m.isNew && (m.join != 0 || m.sync != 0):
		// Parked, it cannot beat. The rebalance's own timers look after it.
		g.rearm(x, m, m.session)
		return
	}
	why := trigger(journal.TriggerExpired, m, nil)
	why.Silent, why.At = m.session, g.atClassic(x, m)
	if m.isNew {
		why.Silent, why.New = x.now.Sub(time.UnixMilli(m.asked)), true
	}
	g.drop(x, m)
	if g.state == PreparingRebalance {
		g.rebalance.add(why)
		g.expiredComplete(x)
		return
	}
	g.rebalanceOrComplete(x, why)
}

// expiredComplete ends the join phase if only the member that has expired was
// missing, even during the initial delay.
func (g *classicGroup) expiredComplete(x *step) {
	if g.state == PreparingRebalance && g.allJoined() {
		g.completeJoin(x)
	}
}

// newMemberTimeout is how long a new member may be parked in JoinGroup. It
// cannot send heartbeats, since it does not know its id, and a client that gave
// up and tried again would leave a dead member behind each time.
const newMemberTimeout = 5 * time.Minute
