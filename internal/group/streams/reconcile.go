package streams

import (
	"slices"

	"muster/internal/group/kind"
	"muster/internal/group/modern"
)

// Toward is what a member comes to.
func (g *Group) Toward(_ *kind.Step, m *Member) modern.Target[Task] {
	return modern.Target[Task]{
		Wanted: func() []Task { return m.Target },
		Wants:  func(Task) bool { return true },
		IsFree: func(t Task) bool { return g.isFree(t, m) },
		Steps:  true,
	}
}

// isFree says whether a member may be given a task now. Nowhere may it be active twice, and no
// process may have it twice in any role: threads of one have their state in the same directory.
// What the member itself had does not count: when it is given something it has let go of that.
func (g *Group) isFree(t Task, m *Member) bool {
	others := slices.ContainsFunc(g.holders[place{m.process(), t.TaskID}], func(h holding) bool { return h.by != m })
	if t.Role == Active {
		owner := g.actives[t.TaskID]
		others = others || owner != nil && owner != m
	}
	return !others && (g.AllHeard() || m.has(t.TaskID))
}

// has says whether a member has a task active, which no one else can have then without the
// coordinator knowing.
func (m *Member) has(id TaskID) bool {
	now := m.Now()
	return modern.Holds(now.Assigned, Task{Active, id}) || modern.Holds(now.Pending, Task{Active, id})
}
