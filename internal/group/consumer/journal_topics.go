package consumer

import (
	"slices"

	"muster/internal/group/kind"
	"muster/internal/group/modern"
	"muster/internal/journal"
)

// addPatternTrigger says what a pattern matches that it did not, and matches no more. Who
// has it is one of those that do.
func (g *Group) addPatternTrigger(x *kind.Step, pattern string, found []string) {
	t := journal.Trigger{Kind: journal.TriggerRegex, Change: &journal.Change{Regex: kind.Truncate(pattern, kind.MaxReason)}}
	var was []string
	if old := g.Regexes[pattern]; old != nil {
		was = old.Topics
	}
	t.Change.TopicsAdded, t.Change.TopicsAddedN = kind.Without(found, was)
	t.Change.TopicsRemoved, t.Change.TopicsRemovedN = kind.Without(was, found)
	if len(x.Why) < kind.MaxTriggers { // It is left out otherwise.
		if i := slices.IndexFunc(g.Members, func(m *Member) bool { return m.pattern() == pattern }); i >= 0 {
			t.Who = modern.Who(g.Members[i])
		}
	}
	modern.AddTriggers(x, t)
}
