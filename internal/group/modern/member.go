package modern

import (
	"time"

	"muster/internal/group/kind"
	"muster/internal/machine"
)

// Member is what members of all kinds of groups have in which the coordinator assigns: what
// is stored of their assignment, and the timers by which they must be heard of and must have
// let go of partitions.
type Member[P Part[P]] struct {
	ID        string
	Target    []P         // what it is to have
	HasTarget bool        // there is a record of that
	Current   *Current[P] // where it has got to, nil if there is no record

	Deadline    time.Time // to be heard of
	TimerAt     time.Time // when the session timer fires, at the deadline or before
	TimerSeq    uint64
	RevokeSeq   uint64        // of the timer by which it must have let go, 0 if none
	RevokeBy    time.Time     // when that fires
	revokeEpoch int32         // the epoch in which that was armed
	Since       time.Time     // since when it is to let go of something, or waits for others to
	Silent      int64         // since when it counts as silent, see kind.Step.SilentSince; 0 if it was not loaded, or is heard of since
	Unheard     bool          // it was loaded, and not heard of since
	Untold      bool          // it was loaded, and not told what it has since
	Refused     *kind.Fencing // who else came in its name, nil for no one
}

// Now is where the member has got to; a new one is nowhere.
func (m *Member[P]) Now() Current[P] {
	if m.Current == nil {
		return Current[P]{}
	}
	return *m.Current
}

// HasSettled says whether a member has all that it is to have.
func (m *Member[P]) HasSettled(targetEpoch int32) bool {
	now := m.Now()
	return now.State == Stable && now.Epoch == targetEpoch
}

// IsStored says whether there is a record of what is or will be assigned to it.
func (m *Member[P]) IsStored() bool { return m.Current != nil || m.HasTarget }

// Had says whether a member has had a partition since an epoch, or longer (KIP-1251).
func (m *Member[P]) Had(p P, epoch int32) bool {
	if m.Current == nil {
		return false
	}
	since, ok := SinceOf(m.Current.Assigned, p)
	if !ok {
		since, ok = SinceOf(m.Current.Pending, p)
	}
	return ok && since <= epoch
}

// Timer is the key of one of a member's timers.
func (m *Member[P]) Timer(kind, group string) machine.TimerKey {
	return machine.TimerKey{Kind: kind, ID: group, Member: m.ID}
}

// Hear notes that a member is not silent any more since the load.
func (m *Member[P]) Hear(x *kind.Step, b *kind.Base) {
	if m.Silent != 0 {
		m.Silent = 0
		x.EndSilence(b, m.ID)
	}
}

// Wait gives a member until d from now to be heard of. The timer is left alone as long as it
// does not fire later than that, so a heartbeat costs none.
func (m *Member[P]) Wait(x *kind.Step, b *kind.Base, d, session time.Duration) {
	m.Deadline = x.Now.Add(d)
	if m.TimerSeq == 0 || m.Deadline.Before(m.TimerAt) {
		m.TimerAt = x.SessionTimer(b, m.ID, m.Silent, session, m.Deadline)
		m.TimerSeq = x.Arm(m.Timer(kind.TimerSession, b.ID), m.TimerAt)
	}
}

// SessionFired handles the session timer, and says whether the session is over.
func (m *Member[P]) SessionFired(x *kind.Step, b *kind.Base, e machine.TimerFired, session time.Duration) (over bool) {
	switch {
	case m.TimerSeq != e.Seq:
		return false
	case x.Now.Before(m.Deadline):
		x.NoteSilence(b, m.ID, m.Silent, session)
		m.TimerAt = x.SessionTimer(b, m.ID, m.Silent, session, m.Deadline)
		m.TimerSeq = x.Arm(e.Key, m.TimerAt)
		return false
	}
	m.TimerSeq = 0
	return true
}

// StartRevoking gives a member so long to let go of what it was told to.
func (m *Member[P]) StartRevoking(x *kind.Step, group string, timeout time.Duration) {
	m.revokeEpoch, m.RevokeBy = m.Now().Epoch, x.Now.Add(timeout)
	m.RevokeSeq = x.Arm(m.Timer(kind.TimerRevoke, group), m.RevokeBy)
}

// StopRevoking notes that a member has nothing to let go of any more.
func (m *Member[P]) StopRevoking(x *kind.Step, group string) {
	if m.RevokeSeq != 0 {
		m.RevokeSeq = 0
		x.Cancel(m.Timer(kind.TimerRevoke, group))
	}
}

// RevokeFired handles the timer, and says whether the member has not let go in time: it is
// still in the epoch in which it was told to.
func (m *Member[P]) RevokeFired(e machine.TimerFired) (late bool) {
	if m.RevokeSeq != e.Seq {
		return false
	}
	m.RevokeSeq = 0
	return m.revokeEpoch == m.Now().Epoch
}

// Stop cancels the timers.
func (m *Member[P]) Stop(x *kind.Step, group string) {
	m.StopRevoking(x, group)
	if m.TimerSeq != 0 {
		x.Cancel(m.Timer(kind.TimerSession, group))
		m.TimerSeq = 0
	}
}
