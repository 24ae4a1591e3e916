package consumer

import (
	"maps"
	"slices"

	"muster/internal/group/kind"
	"muster/internal/group/modern"
	"muster/internal/journal"
	"muster/internal/metadata"
)

// findTopics finds the topics that members subscribe to.
func (g *Group) findTopics(image *metadata.Image) *modern.Topics {
	names := slices.Sorted(maps.Keys(g.Names))
	for _, r := range slices.Sorted(maps.Keys(g.Patterns)) {
		if g.Regexes[r] != nil {
			names = append(names, g.Regexes[r].Topics...)
		}
	}
	return modern.FindTopics(image, names)
}

// checkTopics looks at the topics, and returns their hash. What has happened to them since
// the last look is a reason for another epoch.
func (g *Group) checkTopics(x *kind.Step) int64 {
	next := g.findTopics(x.Image)
	if x.Image == nil {
		return next.Hash()
	}
	if last := g.Account.topics; last != nil {
		if changed := last.Changes(next); len(changed) > 0 {
			addTriggers(x, journal.Trigger{Kind: journal.TriggerTopics, Topics: &journal.TopicChanges{List: changed[:min(len(changed), kind.MaxNames)], N: len(changed)}})
			g.Account.topicsBefore = last
		}
	}
	g.Account.topics = next
	return next.Hash()
}

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
			t.Who = g.Members[i].who()
		}
	}
	addTriggers(x, t)
}
