package modern

import (
	"time"

	"muster/internal/group/kind"
	"muster/internal/group/schema"
	"muster/internal/journal"
)

// AnyMember is a member of some kind of group: a pointer to what embeds Member.
type AnyMember[P Part[P]] interface {
	comparable
	// Common is what members of all kinds have.
	Common() *Member[P]
	// Identity is who it says it is, false if there is no record of that.
	Identity() (Identity, bool)
	// RevokeTimeout is how long it has to let go of what it was told to, false if no one
	// waits for that.
	RevokeTimeout() (time.Duration, bool)
}

// Identity is who a member is.
type Identity struct {
	Instance       *string
	ClientID, Host string
}

// Kind is what a kind of group does its own way. Below are those that a kind may leave out,
// since Group has them.
type Kind[P Part[P], M AnyMember[P]] interface {
	kind.Group
	NewMember(id string) M
	Config(x *kind.Step) *kind.KindConfig
	// Session is how long a member may be silent.
	Session(x *kind.Step, m M) time.Duration
	// TopicNames lists the topics that members want to read, in any order, each as often as
	// they like. Whether they exist, and what they are, is looked up.
	TopicNames() []string
	// Job is what the assignor is to do now, and Assignor who is to do it.
	Job(x *kind.Step) Job[P]
	Assignor(x *kind.Step) string
	// Toward is what a member comes to, all but its epoch.
	Toward(x *kind.Step, m M) Target[P]
	// FitsHeld says whether it can be stored that a member has these, and also, for each,
	// that it is to let go of it.
	FitsHeld(x *kind.Step, member string, list []P) bool

	// The records of this kind; nil, or the zero value, is for a tombstone.
	MemberRecord(id string, m M) schema.Record
	EpochRecord(v *Epoch) schema.Record
	TargetEpochRecord(v *TargetEpoch) schema.Record
	TargetRecord(member string, v *TargetOf[P]) schema.Record
	CurrentRecord(member string, v *Current[P]) schema.Record

	// Respond answers a heartbeat, with what its member has if that is to be told. Fail
	// answers it with an error.
	Respond(x *kind.Step, m M, b Pending[P], parts bool)
	Fail(x *kind.Step, b Pending[P], err *Refusal)

	Optional[P, M]
}

// Optional is what a kind may do otherwise than Group does it.
type Optional[P Part[P], M AnyMember[P]] interface {
	// Count counts what a member says of itself in or out, by n. Hold notes that a member
	// holds what it has, or has yet to let go of, or does not any more.
	Count(m M, n int)
	Hold(m M, holds bool)
	// SettleOwners sees to it after a load that no two have what only one may have.
	SettleOwners(x *kind.Step)
	// OtherRecords are those that only groups of this kind have, or their tombstones.
	OtherRecords(live bool) []schema.Record

	// Refresh does in a heartbeat what has to be done between another epoch and a target.
	Refresh(x *kind.Step)
	// Defers says that no target is to be made yet, though it is behind.
	Defers(x *kind.Step) bool
	// EpochRaised is told when the group has another epoch, Forget when a member is gone.
	EpochRaised(x *kind.Step)
	Forget(x *kind.Step)
	// IsReplaceable says whether someone else may come for a static member's place.
	IsReplaceable(m M) bool
	// Converts says whether the group became one of another kind as a member is gone. If so,
	// that is done, and the member is.
	Converts(x *kind.Step, gone M) bool
	// StopTimers cancels the timers of a member that only this kind has.
	StopTimers(x *kind.Step, m M)

	// NoteTarget tells the journal of a new target.
	NoteTarget(x *kind.Step, job Job[P])
	// Positions is where a member is, what it has yet to let go of included. Unrevoked is
	// what it has not let go of though it was told to, and Revokes who must let go of what.
	Positions(x *kind.Step, m M) []journal.Position
	Unrevoked(x *kind.Step, m M) *journal.Revoke
	Revokes(x *kind.Step) ([]journal.Revoke, int)
}

// Epoch is what the record of a group's epoch says.
type Epoch struct {
	Epoch int32
	Hash  int64
}

// TargetEpoch is what the record of its target's epoch says.
type TargetEpoch struct {
	Epoch int32
	At    int64 // in milliseconds
}

// TargetOf is what the record of a member's target says.
type TargetOf[P Part[P]] struct{ Parts []P }

func (g *Group[P, M]) Count(M, int) {}

func (g *Group[P, M]) Hold(M, bool) {}

func (g *Group[P, M]) SettleOwners(*kind.Step) {}

func (g *Group[P, M]) OtherRecords(bool) []schema.Record { return nil }

func (g *Group[P, M]) Refresh(*kind.Step) {}

func (g *Group[P, M]) Defers(*kind.Step) bool { return false }

func (g *Group[P, M]) EpochRaised(*kind.Step) {}

func (g *Group[P, M]) Forget(*kind.Step) {}

// IsReplaceable says whether a member has left for a while.
func (g *Group[P, M]) IsReplaceable(m M) bool { return m.Common().Now().Epoch == EpochLeaveStatic }

func (g *Group[P, M]) Converts(*kind.Step, M) bool { return false }

func (g *Group[P, M]) StopTimers(*kind.Step, M) {}

// NoteTarget tells that there is a target, and who made it.
func (g *Group[P, M]) NoteTarget(x *kind.Step, job Job[P]) {
	e := g.own.Entry(x, journal.KindTarget)
	e.Protocol = job.Assignor()
	x.Out.Notes = append(x.Out.Notes, &e)
}

func (g *Group[P, M]) Positions(*kind.Step, M) []journal.Position { return nil }

func (g *Group[P, M]) Unrevoked(*kind.Step, M) *journal.Revoke { return nil }

func (g *Group[P, M]) Revokes(*kind.Step) ([]journal.Revoke, int) { return nil, 0 }
