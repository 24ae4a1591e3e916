package group

// alive notes that a member of a classic group that was silent since the load is not. What
// was left to it of its session timeout may be short: it has a whole one.
func (g *classicGroup) alive(x *step, m *member) {
	if m.silent != 0 {
		m.silent = 0
		x.endSilence(&g.base, m.id)
		g.touch(x, m, m.session)
	}
}

// silentMembers is since when members of a classic group that are silent count as that.
func (g *classicGroup) silentMembers() map[string]int64 {
	out := map[string]int64{}
	for m := g.members.first; m != nil; m = m.next {
		if m.silent != 0 {
			out[m.id] = m.silent
		}
	}
	return out
}
