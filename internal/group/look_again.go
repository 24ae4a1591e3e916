package group

// Stamp remembers how a group was, all but its offsets, so that who looks at all groups
// again and again can tell at a glance which are as they were. It only compares.
type Stamp struct {
	g       Group
	version version
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
	return Stamp{g, g.version()}
}

// Same says whether the group is as it was, all but its offsets.
func (s *Stamp) Same() bool {
	return s.g != nil && !s.g.common().gone && !s.version.unsettled && s.g.version() == s.version
}
