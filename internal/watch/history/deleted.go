package history

// A group that was deleted stands in a record by itself, with one topic that has no name
// and one position that is gone: another group of the same name has no part in its past.

// DeletedGroup is how a record says that a group was deleted.
func DeletedGroup(name string) Group {
	return Group{Name: name, Topics: []Topic{{Positions: []Position{{Committed: Gone}}}}}
}

// Deleted says whether the group was deleted then.
func (g *Group) Deleted() bool {
	return len(g.Topics) == 1 && g.Topics[0].Name == "" && len(g.Topics[0].Positions) == 1 && g.Topics[0].Positions[0] == Position{Committed: Gone}
}
