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

// apply changes the hard state. A group exists as long as it has a record.
func (s *Shard) apply(r machine.Record) {
	switch r := r.(type) {
	case *schema.OffsetRecord:
		if g := s.groupFor(r.Group, r.Value != nil); g != nil {
			g.applyOffset(r)
			s.overtake(g, r)
			s.forgetIfGone(g)
		}
	case *schema.GroupRecord:
		if g := s.groupFor(r.Group, r.Value != nil); g != nil {
			g.hard = r.Value
			s.forgetIfGone(g)
		}
	case *schema.RebalanceRecord:
		if g := s.groupFor(r.Group, r.Value != nil); g != nil {
			g.rebalancing = r.Value
			s.forgetIfGone(g)
		}
	case *schema.DepartureRecord:
		if g := s.groupFor(r.Group, r.Value != nil); g != nil {
			g.applyDeparture(r)
			s.forgetIfGone(g)
		}
	case *schema.SilenceRecord:
		if g := s.groupFor(r.Group, r.Value != nil); g != nil {
			g.applySilence(r)
			s.forgetIfGone(g)
		}
	default:
		s.applyConsumerRecord(r)
	}
}

// groupFor returns the group that a record is about, and makes it if it says
// anything about it.
func (s *Shard) groupFor(id string, says bool) *group {
	g := s.groups[id]
	if g == nil && says {
		g = newGroup(id)
		s.groups[id] = g
	}
	return g
}

func (s *Shard) forgetIfGone(g *group) {
	if g.hard == nil && len(g.offsets) == 0 && len(g.unstable) == 0 && g.consumer == nil && g.rebalancing == nil && len(g.departed) == 0 && len(g.silences) == 0 {
		if g.state = Dead; g.id != s.step.weighed {
			s.weight -= g.weight() // Of those who are about to join.
		}
		delete(s.groups, g.id)
	}
}

func (g *group) applyDeparture(r *schema.DepartureRecord) {
	if r.Value == nil {
		if delete(g.departed, r.Member); len(g.departed) == 0 {
			g.departed = nil
		}
		return
	}
	if g.departed == nil {
		g.departed = map[string]int32{}
	}
	g.departed[r.Member] = r.Value.Generation
}

func (g *group) applyOffset(r *schema.OffsetRecord) {
	t := g.offsets[r.Topic]
	switch {
	case r.Value != nil:
		if t == nil {
			if g.offsets == nil {
				g.offsets = map[string]*topicOffsets{}
			}
			t = &topicOffsets{parts: map[int32]kept{}}
			g.offsets[r.Topic] = t
		}
		t.put(r.Partition, r.Value)
	case t != nil:
		if delete(t.parts, r.Partition); t.len() == 0 {
			delete(g.offsets, r.Topic)
		}
	}
}
