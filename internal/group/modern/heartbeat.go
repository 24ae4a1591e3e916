package modern

import (
	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/group/kind"
	"muster/internal/machine"
)

// A heartbeat goes this way, whatever the kind, in Kafka's order:
//
//	the kind   finds its group, or makes one (of nothing, or of one of another kind)
//	PlaceOf    whose heartbeat it is: is the group full, is the member known, its epoch right
//	the kind   stores what the member says of itself, if that differs; ReplaceStatic
//	Proceed    Bump      another epoch, if the member or its topics are not what they were
//	           Refresh   what the kind has to do before a target is made
//	           Retarget  a target, if it is behind and the interval is over
//	           Reconcile the member, towards its target
//	           Touch     its session timer
//	           Respond   the answer, which is the kind's
//
// If the target is made elsewhere, the heartbeat waits for that before it is reconciled.

// Refusal is an error that is told to a client with a reason.
type Refusal struct {
	*kerr.Error
	Reason string
}

// Refused makes one.
func Refused(err *kerr.Error, reason string) *Refusal { return &Refusal{err, reason} }

// Pending is what is left of a heartbeat once it is known what its member wants.
type Pending[P Part[P]] struct {
	Heartbeat[P]
	ID      machine.RequestID
	Version int16
	Member  string
	Full    bool // the client wants to be told everything
	// Unsubscribed says that it subscribes to other topics since this heartbeat.
	Unsubscribed bool
}

// Proceed goes on with a heartbeat once it is known what its member wants.
func (g *Group[P, M]) Proceed(x *kind.Step, m M, ch Change, b Pending[P]) {
	g.Bump(x, ch)
	g.own.Refresh(x)
	if g.Retarget(x) {
		g.park(x, m, b)
		return
	}
	g.answer(x, m, b)
}

// answer brings a member forward, and tells it where it is.
func (g *Group[P, M]) answer(x *kind.Step, m M, b Pending[P]) {
	mem := m.Common()
	before := mem.Current
	g.advance(x, m, b)
	changed := mem.Current != before && !SameParts(before.AssignedParts(), mem.Current.AssignedParts())
	g.own.Respond(x, m, b, b.Full || mem.Untold || changed)
	mem.Untold = false
}

// advance brings a member forward that was heard of.
func (g *Group[P, M]) advance(x *kind.Step, m M, b Pending[P]) {
	mem := m.Common()
	was, told := mem.Now(), mem.Since
	g.clearUnheard(mem)
	b.Unsubscribed = b.Unsubscribed || mayHaveUnsubscribed(x, mem)
	g.Reconcile(x, m, b)
	g.Touch(x, m)
	g.NoteProgress(x, m, &was, told)
}

// Reconcile brings a member nearer to its target, and stores where it has got to.
func (g *Group[P, M]) Reconcile(x *kind.Step, m M, b Pending[P]) {
	mem := m.Common()
	if mem.Current != nil && mem.HasSettled(g.TargetEpoch) && !b.Unsubscribed {
		return
	}
	now, to := mem.Now(), g.own.Toward(x, m)
	to.Epoch, to.Unsubscribed = g.TargetEpoch, b.Unsubscribed
	now.Reconcile(&b.Heartbeat, &to)
	if mem.Current == nil || !now.Same(mem.Current) {
		g.storeCurrent(x, m, &now)
	}
}

// storeCurrent stores where a member has got to. Whoever has to let go of something
// has its rebalance timeout for that, from now on.
func (g *Group[P, M]) storeCurrent(x *kind.Step, m M, now *Current[P]) {
	mem := m.Common()
	if mem.Now().State != now.State {
		mem.Since = x.Now
	}
	x.Write(g.own.CurrentRecord(mem.ID, now))
	if timeout, ok := m.RevokeTimeout(); ok && now.State == Unrevoked {
		mem.StartRevoking(x, g.ID, timeout)
		return
	}
	mem.StopRevoking(x, g.ID)
}

// Touch notes that a member was heard of.
func (g *Group[P, M]) Touch(x *kind.Step, m M) {
	g.NoteHeard(x, m)
	session := g.own.Session(x, m)
	m.Common().Wait(x, &g.Base, session, session)
}

// NoteHeard notes that a member is not silent any more since the load.
func (g *Group[P, M]) NoteHeard(x *kind.Step, m M) {
	g.clearUnheard(m.Common())
	m.Common().Hear(x, &g.Base)
}

// A heartbeat that has a run of the assignor begin elsewhere waits for what comes of
// it: that does not take long, and its client need not wait for its next heartbeat to
// learn of it. What the heartbeat says its client has was true when it was sent. So it
// waits only as long as nothing else is heard of its member.

// park has a heartbeat wait for the assignor.
func (g *Group[P, M]) park(x *kind.Step, m M, b Pending[P]) {
	g.Touch(x, m)
	waits := b // So that those which need not wait are not made for that.
	g.Run.Parked = &waits
}

// takeParked returns the heartbeat of a member that waits, which does not any more;
// nil if none does.
func (g *Group[P, M]) takeParked(m M) *Pending[P] {
	if g.Run == nil || g.Run.Parked == nil || g.Run.Parked.Member != m.Common().ID {
		return nil
	}
	b := g.Run.Parked
	g.Run.Parked = nil
	return b
}

// unpark tells who waits that its member is one no more.
func (g *Group[P, M]) unpark(x *kind.Step, m M, err *Refusal) {
	if b := g.takeParked(m); b != nil {
		g.own.Fail(x, *b, err)
	}
}

// AnswerOvertaken answers a heartbeat that waits when the member's next one comes, as one
// that changes nothing: its client has not waited for the answer. One that joins is told
// of no partitions: it is in no epoch yet in which it could have any. It says whether the
// member subscribes to other topics since that one, which the next must see to.
func (g *Group[P, M]) AnswerOvertaken(x *kind.Step, m M) (unsubscribed bool) {
	b := g.takeParked(m)
	if b == nil {
		return false
	}
	g.own.Respond(x, m, *b, b.Full && m.Common().Now().Epoch > EpochJoin)
	return b.Unsubscribed
}
