package lag

import (
	"time"

	"muster/internal/watch/history"
)

// Changes returns what is to be written to __group_history: of the groups that are
// wanted, those of a shard, the positions that have changed since a time, or all. At
// first sight a position counts as changed, so after a restart all are written. A group
// whose lag has changed is there even if it has not moved. Without a group there is
// nothing to write.
func (t *Tracker) Changes(since time.Time, all bool, wanted func(group string) bool) *history.Record {
	r := &history.Record{Time: t.nowMillis, Whole: all}
	from := tick(clamp(int64(since.Sub(t.start)/tenth), 0, int64(t.now)+1))
	for _, g := range t.all {
		if !t.seen(g) || !wanted(g.name) {
			continue
		}
		out := history.Group{Name: g.name, Lag: g.Lag, Age: int64(g.Seconds * 1000), Topics: g.changed(from, all)}
		if len(out.Topics) > 0 || g.ring != nil && g.ring.moved >= from {
			r.Groups = append(r.Groups, out)
		}
	}
	return r
}

func (g *group) changed(from tick, all bool) []history.Topic {
	var out []history.Topic
	for _, p := range g.positions {
		if p.changed < from && !all {
			continue
		}
		if n := len(out); n == 0 || out[n-1].Name != p.log.Topic {
			out = append(out, history.Topic{Name: p.log.Topic})
		}
		topic := &out[len(out)-1]
		topic.Positions = append(topic.Positions, history.Position{Partition: p.log.Partition, Committed: p.committed})
	}
	return out
}
