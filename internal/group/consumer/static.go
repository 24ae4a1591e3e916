package consumer

import (
	"muster/internal/group/kind"
	"muster/internal/group/modern"
	"muster/internal/group/schema"
	"muster/internal/machine"
)

// The place of a static member that has left, or uses the classic protocol, goes to
// whoever comes with the same instance id: its heir has what it had, and is to have what
// it was to. That is stored in one batch, with what the heir says of itself and with the
// epoch that the group has if that is something else. Were only a part of it stored,
// no one would have what the old one had, and no other epoch would say that it is to be
// shared; or the heir would be taken for one that says what the old one said, and uses
// the protocol that the old one used.

// replaceStatic gives the place of a member to its heir. The batch is ended by bump.
func (g *Group) replaceStatic(x *kind.Step, old *Member, id string, meta *schema.ConsumerMember) {
	target, current := old.Target, old.Now()
	x.Emit()
	g.removeMember(x, old)
	x.Write(&schema.ConsumerMemberRecord{Group: g.ID, Member: id, Value: meta})
	x.Write(TargetRecord(g.ID, id, target))
	current.Epoch, current.Previous = modern.EpochJoin, modern.EpochJoin
	current.Assigned, current.Pending = modern.AtEpochZero(current.Assigned), modern.AtEpochZero(current.Pending)
	x.Write(CurrentRecord(g.ID, id, &current))
}

// emitReplacement asks for all that makes someone an heir to be appended as one batch. What is
// too large for that is appended in parts: the epoch is the first, if there is another.
func emitReplacement(x *kind.Step) {
	whole := machine.Batch{Records: x.Records, Whole: true}
	if x.MaxBatch <= 0 || whole.Size() <= x.MaxBatch {
		x.Records = nil
		x.Out.Batches = append(x.Out.Batches, whole)
	}
}

// fitsReplacement says whether what a member that has left had, and was to have, can be stored
// under another member id; nil is no one.
func fitsReplacement(x *kind.Step, old *Member, group, id string) bool {
	if old == nil {
		return true
	}
	now := old.Now()
	return x.Fits(TargetRecord(group, id, old.Target)) && x.Fits(CurrentRecord(group, id, &now))
}
