package sim

import (
	"maps"
	"slices"

	"muster/internal/group/schema"
	"muster/internal/machine"
)

// checkHeirs checks that whoever takes the place of a static member is its heir wholly or
// not at all, whatever the log loses then: the end of the old one, what the heir says of
// itself, what it has, and the epoch that the group has because of it are stored together.
func (b *beaten) checkHeirs(e *entry) {
	for _, id := range slices.Sorted(maps.Keys(b.heir)) {
		first, last := len(e.originals), -1
		for i, r := range e.originals {
			if consumerGroupOf(r) == b.v.id && b.makesHeir(r, id) {
				first, last = min(first, i), max(last, i)
			}
		}
		if b.c.w.plan.maxBatch == 0 && !e.inOneBatch(first, last) {
			b.c.w.Violated("%s: a part of what makes %s the heir of %s may be stored", b.v.id, short(id), short(b.heir[id]))
		}
	}
}

// makesHeir says whether a record is part of what makes a member the heir of another.
// Where it gets to from there is not.
func (b *beaten) makesHeir(r machine.Record, id string) bool {
	switch r := r.(type) {
	case *schema.ConsumerEpochRecord:
		return r.Value != nil && r.Value.Epoch == b.after.epoch && b.after.epoch != b.before.epoch
	case *schema.ConsumerMemberRecord:
		return r.Member == b.heir[id] && r.Value == nil || r.Member == id && r.Value != nil
	case *schema.ConsumerCurrentRecord:
		return r.Member == b.heir[id] && r.Value == nil || r.Member == id && r.Value != nil && r.Value.Epoch == 0
	}
	return false
}
