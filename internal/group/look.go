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
