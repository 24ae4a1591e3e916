package classic

import "muster/internal/group/kind"

// noteHeard notes that a member of a classic group that was silent since the load is not. What
// was left to it of its session timeout may be short: it has a whole one.
func (g *Group) noteHeard(x *kind.Step, m *Member) {
	if m.Silent != 0 {
		m.Silent = 0
		x.EndSilence(&g.Base, m.ID)
		g.touch(x, m, m.Session)
	}
}

// SilentMembers is since when members of a classic group that are silent count as that.
func (g *Group) SilentMembers() map[string]int64 {
	out := map[string]int64{}
	for m := g.Members.First; m != nil; m = m.Next {
		if m.Silent != 0 {
			out[m.ID] = m.Silent
		}
	}
	return out
}
