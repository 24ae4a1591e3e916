package group

import (
	"muster/internal/group/schema"
	"muster/internal/machine"
)

// Replay applies records that were read from the log. Compaction may have
// removed any others, so a record may come in any order and of a group that is
// not known; a tombstone of what is not known does nothing.
func (s *Shard) Replay(b machine.Stored) {
	transactional := b.Producer != nil && b.Producer.Transactional
	switch {
	case b.Control != nil && b.Producer != nil:
		s.applyMarker(b.Producer, b.Control)
	case transactional:
		p := s.applyOpen(b.Producer)
		for _, r := range b.Records {
			s.applyPending(p, r.Record)
		}
	default:
		for _, r := range b.Records {
			s.apply(r.Record)
		}
	}
}

// apply changes the hard state. A group exists as long as it has a record. One of another
// kind than the group is replaces the group, as in Kafka, unless it is a tombstone.
func (s *Shard) apply(record machine.Record) {
	switch r := record.(type) {
	case *schema.OffsetRecord:
		if g := s.groupFor(r.Group, r.Value != nil); g != nil {
			b := g.common()
			b.applyOffset(r)
			s.overtake(b, r)
			s.forgetIfGone(g)
		}
	case *schema.SilenceRecord:
		if g := s.groupFor(r.Group, r.Value != nil); g != nil {
			g.common().applySilence(r)
			s.forgetIfGone(g)
		}
	case schema.Record:
		g := s.groups[r.GroupID()]
		if g == nil || g.kind() != r.Kind() {
			if r.IsTombstone() {
				return
			}
			g = s.become(r.GroupID(), r.Kind())
		}
		g.replay(r)
		s.forgetIfGone(g)
	}
}

// groupFor returns the group that a record is about which any group may have, and makes
// one if it is no tombstone.
func (s *Shard) groupFor(id string, make bool) Group {
	g := s.groups[id]
	if g == nil && make {
		g = s.become(id, kinds[0].name)
	}
	return g
}

// become makes a group one of another kind: what there was of it, but for its offsets, is
// forgotten.
func (s *Shard) become(id string, name schema.Kind) Group {
	next := base{id: id}
	if old := s.groups[id]; old != nil {
		next = *old.common()
		old.common().gone = true
		if id != s.step.weighed {
			s.weight -= old.weight()
		}
	}
	for i := range kinds {
		if kinds[i].name == name {
			s.groups[id] = kinds[i].make(next)
		}
	}
	return s.groups[id]
}

// forgetIfGone forgets a group without records. Its offsets, if it has any, are a group of
// their own.
func (s *Shard) forgetIfGone(g Group) {
	b := g.common()
	switch {
	case b.gone || !g.isGone():
	case !b.hasOffsets() && len(b.silences) == 0:
		b.gone = true
		if b.id != s.step.weighed {
			s.weight -= g.weight() // Of those who are about to join.
		}
		delete(s.groups, b.id)
	case g.kind() != kinds[0].name:
		s.become(b.id, kinds[0].name)
	}
}
