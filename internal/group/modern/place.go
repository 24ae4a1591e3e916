package modern

import (
	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/group/kind"
	"muster/internal/group/schema"
	"muster/internal/machine"
)

// Claim is what a heartbeat says of whose it is.
type Claim struct {
	Member   string
	Instance *string
	Epoch    int32
}

// Place is whose place in the group a heartbeat takes: that of a member, of another whose
// place it takes over, or none yet.
type Place[M any] struct {
	Known    M
	Replaces M // a static member, see IsReplaceable
}

// PlaceOf says whose heartbeat it is, or why no one's.
func (g *Group[P, M]) PlaceOf(x *kind.Step, c Claim, h *Heartbeat[P]) (p Place[M], err *Refusal) {
	var none M
	joins := c.Epoch == EpochJoin
	p.Known = g.Member(c.Member)
	full := p.Known == none && g.Present >= g.own.Config(x).MaxSize
	if c.Instance != nil {
		holder := g.Instances[*c.Instance]
		replaceable := holder != none && g.own.IsReplaceable(holder)
		switch {
		case full && (!joins || !replaceable): // Who takes a place takes no more room.
		case holder == none && !joins:
			return p, Refused(kerr.UnknownMemberID, "Instance "+*c.Instance+" is not a member of the group.")
		case holder == none || holder.Common().ID == c.Member:
		case !joins:
			return p, Refused(kerr.FencedInstanceID, "Instance "+*c.Instance+" is owned by member "+holder.Common().ID+".")
		case !replaceable:
			return p, Refused(kerr.UnreleasedInstanceID, "Instance "+*c.Instance+" is owned by member "+holder.Common().ID+", which has not left.")
		default:
			p.Replaces = holder
			return p, nil
		}
	}
	switch {
	case p.Known != none:
		return p, g.checkEpoch(p.Known, c.Epoch, h)
	case full:
		return p, Refused(kerr.GroupMaxSizeReached, "The "+string(g.own.Kind())+" group has reached its maximum capacity.")
	case !joins:
		return p, Refused(kerr.UnknownMemberID, "Member "+c.Member+" is not a member of group "+g.ID+".")
	}
	return p, nil
}

// checkEpoch says whether a member may go on from the epoch that it names.
func (g *Group[P, M]) checkEpoch(m M, epoch int32, h *Heartbeat[P]) *Refusal {
	why := ""
	switch m.Common().Check(epoch, h) {
	case EpochFine:
		return nil
	case EpochUnknown:
		why = "is in an unknown state"
	case EpochAhead:
		why = "has partitions that the group coordinator does not know it has"
	case EpochGreater:
		why = "has a greater member epoch than the one known by the group coordinator"
	case EpochSmaller:
		why = "has a smaller member epoch than the one known by the group coordinator"
	}
	return Refused(kerr.FencedMemberEpoch, "The "+string(g.own.Kind())+" group member "+why+". The member must abandon all its partitions and rejoin.")
}

// The place of a static member that has left for a while goes to whoever comes with the same
// instance id: its heir has what it had, and is to have what
// it was to. That is stored in one batch, with what the heir says of itself and with the
// epoch that the group has if that is something else. Were only a part of it stored,
// no one would have what the old one had, and no other epoch would say that it is to be
// shared; or the heir would be taken for one that says what the old one said, and uses
// the protocol that the old one used.

// ReplaceStatic gives the place of a member to its heir, of whom there is a record. The batch
// is ended by Bump.
func (g *Group[P, M]) ReplaceStatic(x *kind.Step, old M, id string, heir schema.Record) {
	mem := old.Common()
	target, current := mem.Target, mem.Now()
	x.Emit()
	g.removeMember(x, old)
	x.Write(heir)
	x.Write(g.own.TargetRecord(id, &TargetOf[P]{target}))
	current.Epoch, current.Previous = EpochJoin, EpochJoin
	current.Assigned, current.Pending = AtEpochZero(current.Assigned), AtEpochZero(current.Pending)
	x.Write(g.own.CurrentRecord(id, &current))
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

// FitsReplacement says whether what a member that has left had, and was to have, can be stored
// under another member id.
func (g *Group[P, M]) FitsReplacement(x *kind.Step, old M, id string) bool {
	mem := old.Common()
	now := mem.Now()
	return x.Fits(g.own.TargetRecord(id, &TargetOf[P]{mem.Target})) && x.Fits(g.own.CurrentRecord(id, &now))
}
