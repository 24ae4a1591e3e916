package group

import (
	"muster/internal/group/kind"
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
			b := g.Common()
			b.ApplyOffset(r)
			s.overtake(b, r)
			s.forgetIfGone(g)
		}
	case *schema.SilenceRecord:
		if g := s.groupFor(r.Group, r.Value != nil); g != nil {
			g.Common().ApplySilence(r)
			s.forgetIfGone(g)
		}
	case schema.Record:
		g := s.Groups[r.GroupID()]
		if g == nil || g.Kind() != r.Kind() {
			if r.IsTombstone() {
				return
			}
			g = s.become(r.GroupID(), r.Kind())
		}
		g.Replay(r)
		s.forgetIfGone(g)
	}
}

// groupFor returns the group that a record is about which any group may have, and makes
// one if it is no tombstone.
func (s *Shard) groupFor(id string, make bool) kind.Group {
	g := s.Groups[id]
	if g == nil && make {
		g = s.become(id, kinds[0].Name)
	}
	return g
}

// become makes a group one of another kind: what there was of it, but for its offsets, is
// forgotten.
func (s *Shard) become(id string, name schema.Kind) kind.Group {
	next := kind.Base{ID: id}
	if old := s.Groups[id]; old != nil {
		next = *old.Common()
		old.Common().Gone = true
		if id != s.step.Weighed {
			s.TotalWeight -= old.Weight()
		}
	}
	for i := range kinds {
		if kinds[i].Name == name {
			s.Groups[id] = kinds[i].Make(next)
		}
	}
	return s.Groups[id]
}

// forgetIfGone forgets a group without records. Its offsets, if it has any, are a group of
// their own.
func (s *Shard) forgetIfGone(g kind.Group) {
	b := g.Common()
	switch {
	case b.Gone || !g.IsGone():
	case !b.HasOffsets() && len(b.Silences) == 0:
		b.Gone = true
		if b.ID != s.step.Weighed {
			s.TotalWeight -= g.Weight() // Of those who are about to join.
		}
		delete(s.Groups, b.ID)
	case g.Kind() != kinds[0].Name:
		s.become(b.ID, kinds[0].Name)
	}
}
