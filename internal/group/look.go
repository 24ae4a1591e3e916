package group

import (
	"maps"
	"slices"
)

// Names are the groups that a shard had at a moment.
type Names struct{ groups map[string]Group }

// Names returns the names of all groups, which is done for little under a lock: to list
// them takes longer, and needs none.
func (s *Shard) Names() Names { return Names{maps.Clone(s.groups)} }

// List returns the names in order.
func (n Names) List() []string { return slices.Sorted(maps.Keys(n.groups)) }

// LookAt fills in what is known of a group; false says that there is none.
func (s *Shard) LookAt(name string, out *Look) bool {
	g := s.groups[name]
	if g == nil {
		return false
	}
	b := g.common()
	out.Name, out.Type, out.State = b.id, string(g.kind()), g.stateName()
	out.ProtocolType, out.Protocol = g.protocolName(), ""
	out.Members, out.Offsets = out.Members[:0], out.Offsets[:0]
	g.look(out)
	for _, topic := range slices.Sorted(maps.Keys(b.offsets)) {
		out.look(topic, b.offsets[topic])
	}
	return true
}
