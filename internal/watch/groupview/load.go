package groupview

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// AgeTimeout is how long a loader looks for the first unread records.
const AgeTimeout = 3 * time.Second

// Loader makes views of groups. It asks for each topic once, even when a thousand
// groups read it, and remembers the answer: use a new one for each view.
type Loader struct {
	source Source
	logs   map[string]Log // Of every topic that was asked for; empty if there is no such topic.
}

// NewLoader returns a loader that knows nothing yet.
func NewLoader(source Source) *Loader { return &Loader{source, map[string]Log{}} }

// Load returns groups by name, and an error for each that it cannot tell of. It
// asks a fixed number of times, however many groups there are.
func (l *Loader) Load(ctx context.Context, names []string) (map[string]*Group, map[string]error, error) {
	described, err := l.source.Describe(ctx, names)
	if err != nil {
		return nil, nil, err
	}
	groups, failed := map[string]*Group{}, map[string]error{}
	topics := map[string]bool{}
	for _, name := range names {
		d, ok := described[name]
		switch {
		case !ok:
			failed[name] = fmt.Errorf("nothing is known of group %s", name)
			continue
		case d.Err != nil:
			failed[name] = d.Err
			continue
		case d.State == Dead:
			failed[name] = &NoGroupError{name}
			continue
		}
		g := newGroup(name, &d)
		groups[name] = g
		for _, topic := range slices.Concat(g.Subscribed(), g.topologyTopics()) {
			topics[topic] = true
		}
		for tp := range d.Committed {
			topics[tp.Topic] = true
		}
	}
	if err := l.LoadLogs(ctx, slices.Sorted(maps.Keys(topics))); err != nil {
		return nil, nil, err
	}
	for name, g := range groups {
		l.addTopics(g)
		l.addPartitions(g, described[name].Committed)
	}
	return groups, failed, nil
}

// One returns one group, nil if there is none.
func (l *Loader) One(ctx context.Context, name string) (*Group, error) {
	groups, failed, err := l.Load(ctx, []string{name})
	if err != nil {
		return nil, err
	}
	var none *NoGroupError
	if err := failed[name]; err != nil && !errors.As(err, &none) {
		return nil, err
	}
	return groups[name], nil
}

// LoadLogs asks for those topics that are not known yet.
func (l *Loader) LoadLogs(ctx context.Context, topics []string) error {
	var missing []string
	for _, topic := range topics {
		if _, known := l.logs[topic]; !known && topic != "" {
			missing = append(missing, topic)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	found, err := l.source.Logs(ctx, missing)
	if err != nil {
		return err
	}
	for _, topic := range missing {
		l.logs[topic] = found[topic]
	}
	return nil
}

// Partitions is how many partitions a topic has that was asked for, 0 if there is
// no such topic.
func (l *Loader) Partitions(topic string) int { return l.logs[topic].Partitions }

// PartitionCounts is Partitions of all topics.
func (l *Loader) PartitionCounts() map[string]int {
	out := make(map[string]int, len(l.logs))
	for topic, log := range l.logs {
		out[topic] = log.Partitions
	}
	return out
}

// Bounds returns where a partition begins and ends, if that is known.
func (l *Loader) Bounds(tp TopicPartition) (Bounds, bool) {
	b, ok := l.logs[tp.Topic].Bounds[tp.Partition]
	return b, ok
}

func newGroup(name string, d *Description) *Group {
	g := d.Group
	g.Name, g.Type, g.Members, g.Partitions = name, cmp.Or(d.Type, TypeClassic), []Member{}, []Partition{}
	for _, m := range d.Members {
		m.Topics, m.Assigned = append([]string{}, m.Topics...), append([]Assigned{}, m.Assigned...)
		if !g.Tells() {
			m.Topics, m.Assigned = nil, nil
		}
		slices.Sort(m.Topics)
		sortAssigned(m.Target)
		sortAssigned(m.Assigned)
		for _, t := range m.Assigned {
			slices.Sort(t.Partitions)
		}
		g.Members = append(g.Members, m)
	}
	return &g
}
