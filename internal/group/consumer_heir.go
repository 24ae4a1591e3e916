package group

import (
	"muster/internal/group/schema"
	"muster/internal/machine"
)

// The place of a static member that has left, or uses the classic protocol, goes to
// whoever comes with the same instance id: its heir has what it had, and is to have what
// it was to. That is stored in one batch, with what the heir says of itself and with the
// epoch that the group has if that is something else. Were only a part of it stored,
// nobody would have what the old one had, and no other epoch would say that it is to be
// shared; or the heir would be taken for one that says what the old one said, and uses
// the protocol that the old one used.

// takeOver gives the place of a member to its heir. The batch is ended by bump.
func (g *consumerGroup) takeOver(x *step, old *consumerMember, id string, says *schema.ConsumerMember) {
	target, current := old.target, old.now()
	x.emit()
	g.removeConsumer(x, old)
	x.write(&schema.ConsumerMemberRecord{Group: g.id, Member: id, Value: says})
	x.write(targetRecord(g.id, id, target))
	current.epoch, current.previous = epochJoin, epochJoin
	current.assigned, current.pending = sinceEver(current.assigned), sinceEver(current.pending)
	x.write(currentRecord(g.id, id, &current))
}

// emitHeir asks for all that makes somebody an heir to be appended as one batch. What is
// too large for that is appended in parts: the epoch is the first, if there is another.
func emitHeir(x *step) {
	whole := machine.Batch{Records: x.records, Whole: true}
	if x.maxBatch <= 0 || whole.Size() <= x.maxBatch {
		x.records = nil
		x.out.Batches = append(x.out.Batches, whole)
	}
}

// fitsHeir says whether what a member that has left had, and was to have, can be stored
// under another member id; nil is nobody.
func fitsHeir(x *step, old *consumerMember, group, id string) bool {
	if old == nil {
		return true
	}
	now := old.now()
	return x.fits(targetRecord(group, id, old.target)) && x.fits(currentRecord(group, id, &now))
}
