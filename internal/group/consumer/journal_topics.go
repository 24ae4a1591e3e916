package consumer

import (
	"maps"
	"slices"

	"muster/internal/group/kind"
	"muster/internal/journal"
	"muster/internal/metadata"
)

// look is the topics that members subscribe to, as they were found.
type look struct {
	topics []*metadata.Topic // by name
	absent []string          // names that no topic has, sorted
}

// lookAt finds the topics that members subscribe to.
func (g *Group) lookAt(image *metadata.Image) *look {
	l := &look{}
	if image == nil {
		return l
	}
	names := slices.Sorted(maps.Keys(g.Names))
	for _, r := range slices.Sorted(maps.Keys(g.Patterns)) {
		if g.Regexes[r] != nil {
			names = append(names, g.Regexes[r].Topics...)
		}
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if t := image.Topic(name); t != nil {
			l.topics = append(l.topics, t)
		} else {
			l.absent = append(l.absent, name)
		}
	}
	return l
}

// name finds the name of a topic by its id.
func (l *look) name(id metadata.TopicID) (string, bool) {
	if l == nil {
		return "", false
	}
	i := slices.IndexFunc(l.topics, func(t *metadata.Topic) bool { return t.ID == id })
	if i < 0 {
		return "", false
	}
	return l.topics[i].Name, true
}

// changes says what happened to topics between two looks. Topics that are subscribed to
// since, or not any more, have not changed.
func (l *look) changes(next *look) (out []journal.TopicChange) {
	was := make(map[string]*metadata.Topic, len(l.topics))
	for _, t := range l.topics {
		was[t.Name] = t
	}
	for _, t := range next.topics {
		old := was[t.Name]
		c := journal.TopicChange{Topic: t.Name, After: len(t.Partitions)}
		if old != nil {
			c.Before = len(old.Partitions)
		}
		switch _, missed := slices.BinarySearch(l.absent, t.Name); {
		case old == nil && missed:
			c.Kind = journal.TopicCreated
		case old != nil && old.ID != t.ID:
			c.Kind = journal.TopicRecreated
		case old != nil && c.Before != c.After:
			c.Kind = journal.TopicGrown
		default:
			continue
		}
		out = append(out, c)
	}
	for _, name := range next.absent {
		if old := was[name]; old != nil {
			out = append(out, journal.TopicChange{Topic: name, Kind: journal.TopicDeleted, Before: len(old.Partitions)})
		}
	}
	return out
}

// topicsNow looks at the topics, and returns their hash. What has happened to them since
// the last look is a reason for another epoch.
func (g *Group) topicsNow(x *kind.Step) int64 {
	next := g.lookAt(x.Image)
	if x.Image == nil {
		return topicsHash(next.topics)
	}
	if last := g.Story.looked; last != nil {
		if changed := last.changes(next); len(changed) > 0 {
			blame(x, journal.Trigger{Kind: journal.TriggerTopics, Topics: &journal.TopicChanges{List: changed[:min(len(changed), kind.MaxNames)], N: len(changed)}})
			g.Story.before = last
		}
	}
	g.Story.looked = next
	return topicsHash(next.topics)
}

// blamePattern says what a pattern matches that it did not, and matches no more. Who
// has it is one of those that do.
func (g *Group) blamePattern(x *kind.Step, pattern string, found []string) {
	t := journal.Trigger{Kind: journal.TriggerRegex, Change: &journal.Change{Regex: kind.FirstCharacters(pattern, kind.MaxReason)}}
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
	blame(x, t)
}
