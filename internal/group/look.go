package group

import (
	"maps"
	"slices"

	"muster/internal/group/kind"
)

// Names are the groups that a shard had at a moment.
type Names struct{ groups map[string]kind.Group }

// Names returns the names of all groups, which is done for little under a lock: to list
// them takes longer, and needs none.
func (s *Shard) Names() Names { return Names{maps.Clone(s.Groups)} }

// List returns the names in order.
func (n Names) List() []string { return slices.Sorted(maps.Keys(n.groups)) }

// LookAt fills in what is known of a group; false says that there is none.
func (s *Shard) LookAt(name string, out *kind.Look) bool {
	g := s.Groups[name]
	if g == nil {
		return false
	}
	b := g.Common()
	out.Name, out.Type, out.State = b.ID, string(g.Kind()), g.StateName()
	out.ProtocolType, out.Protocol = g.ProtocolName(), ""
	out.Members, out.Offsets = out.Members[:0], out.Offsets[:0]
	g.Look(out)
	for _, topic := range slices.Sorted(maps.Keys(b.Offsets)) {
		out.Look(topic, b.Offsets[topic])
	}
	return true
}

// Stamp remembers how a group was, all but its offsets, so that who looks at all groups
// again and again can tell at a glance which are as they were. It only compares.
type Stamp struct {
	g       kind.Group
	version kind.Version
}

// Len is how many groups there are.
func (s *Shard) Len() int { return len(s.Groups) }

// Has says whether there is a group.
func (s *Shard) Has(name string) bool { return s.Groups[name] != nil }

// Stamp returns how a group is now; Same is false of one that is not there.
func (s *Shard) Stamp(name string) Stamp {
	g := s.Groups[name]
	if g == nil {
		return Stamp{}
	}
	return Stamp{g, g.Version()}
}

// Same says whether the group is as it was, all but its offsets.
func (s *Stamp) Same() bool {
	return s.g != nil && !s.g.Common().Gone && !s.version.Unsettled && s.g.Version() == s.version
}
