package lag

import (
	"slices"
	"strings"
)

// TopicLag is how far a group is behind in one topic.
type TopicLag struct {
	Total
	Seconds float64 // The age of the oldest first unread record, 0 without lag.
}

// InTopic returns the lag of a group in one topic. It looks at no more than the group's
// partitions of that topic.
func (t *Tracker) InTopic(name, topic string) TopicLag {
	var out TopicLag
	g := t.groups[name]
	if g == nil || !t.seen(g) {
		return out
	}
	from, _ := slices.BinarySearchFunc(g.positions, topic, func(p *position, topic string) int {
		return strings.Compare(p.log.Topic, topic)
	})
	for _, p := range g.positions[from:] {
		if p.log.Topic != topic {
			break
		}
		out.Partitions++
		if !p.known {
			out.Unknown = true
			continue
		}
		out.add(Count{p.lag, p.approximate})
		out.Seconds = max(out.Seconds, float64(p.age(t.nowMillis))/1000)
	}
	return out
}
