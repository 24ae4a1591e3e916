package group

import "muster/internal/group/schema"

// Stamp remembers how a group was, all but its offsets, so that who looks at all groups
// again and again can tell at a glance which are as they were. It only compares.
type Stamp struct {
	g          *group
	hard       *schema.Group // Another one with each record.
	consumer   *consumer
	changes    uint64 // Of the consumer group's records.
	generation int32
	state      State
}

// Len is how many groups there are.
func (s *Shard) Len() int { return len(s.groups) }

// Has says whether there is a group.
func (s *Shard) Has(name string) bool { return s.groups[name] != nil }

// Stamp returns how a group is now; Same is false of one that is not there.
func (s *Shard) Stamp(name string) Stamp {
	g := s.groups[name]
	if g == nil {
		return Stamp{}
	}
	out := Stamp{g: g, hard: g.hard, consumer: g.consumer, generation: g.generation, state: g.state}
	if g.consumer != nil {
		out.changes = g.consumer.changes
	}
	return out
}

// Same says whether the group is as it was, all but its offsets. Who is a member of a
// classic group, and what it has, is written down with each generation; while one is
// formed nothing is the same. Of a consumer group all that is seen of it is written down.
// It does not tell whether the group was deleted, which is written down, too.
func (s *Stamp) Same() bool {
	g := s.g
	if g == nil || g.consumer != s.consumer || g.hard != s.hard {
		return false
	}
	if g.consumer != nil {
		return g.consumer.changes == s.changes
	}
	return g.state == s.state && g.generation == s.generation && (g.state == Stable || g.state == Empty)
}
