package group

import "muster/internal/group/kind"

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
