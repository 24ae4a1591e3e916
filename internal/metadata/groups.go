package metadata

import (
	"maps"
	"slices"
)

// GroupSettings has the settings of the groups that have some for themselves. It never
// changes. Nil has none.
type GroupSettings struct {
	sets map[string]map[string]string
	size int
}

// Of returns the settings of a group, empty if it has none.
func (s *GroupSettings) Of(group string) map[string]string {
	if s == nil {
		return nil
	}
	return s.sets[group]
}

// Groups returns the groups that have settings, in the order of their names.
func (s *GroupSettings) Groups() []string {
	if s == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(s.sets))
}

// Len returns how many groups have settings.
func (s *GroupSettings) Len() int {
	if s == nil {
		return 0
	}
	return len(s.sets)
}

// Size returns how many bytes the names of groups and their settings take.
func (s *GroupSettings) Size() int {
	if s == nil {
		return 0
	}
	return s.size
}

// With returns how many groups there would be with settings, and what they would take,
// if one of them had these.
func (s *GroupSettings) With(group string, set map[string]string) (groups, bytes int) {
	was := s.Of(group)
	groups, bytes = s.Len(), s.Size()+sizeOfGroup(group, set)-sizeOfGroup(group, was)
	if len(was) > 0 {
		groups--
	}
	if len(set) > 0 {
		groups++
	}
	return groups, bytes
}

// sizeOfGroup is what a group adds to Size.
func sizeOfGroup(group string, set map[string]string) int {
	if len(set) == 0 {
		return 0
	}
	size := len(group)
	for name, value := range set {
		size += len(name) + len(value)
	}
	return size
}

// SetGroup replaces the settings of a group. Without any it is forgotten.
func (e *Edit) SetGroup(group string, set map[string]string) {
	old := e.next.GroupSettings
	if len(set) == 0 && len(old.Of(group)) == 0 {
		return
	}
	_, size := old.With(group, set)
	if !e.ownGroups { // The image before has the same ones until now.
		next := &GroupSettings{sets: map[string]map[string]string{}}
		if old != nil {
			next.sets = maps.Clone(old.sets)
		}
		e.next.GroupSettings, e.ownGroups = next, true
	}
	s := e.next.GroupSettings
	s.size = size
	if len(set) > 0 {
		s.sets[group] = maps.Clone(set)
	} else {
		delete(s.sets, group)
	}
	if len(s.sets) == 0 {
		e.next.GroupSettings, e.ownGroups = nil, false
	}
}
