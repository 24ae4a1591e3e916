package groupview

import (
	"context"
	"maps"
	"slices"
	"time"

	"muster/internal/watch/lag"
)

// addPartitions fills in the partitions of a group with their lag. Those without
// a commit are there too if the group would read them: then its members
// subscribe to the topic or, when we are not told of members, it has committed
// offsets of the topic.
func (l *Loader) addPartitions(g *Group, committed map[TopicPartition]Commit) {
	owners := g.Owners()
	var total int64
	known := true
	for _, tp := range l.partitionsOf(g, committed, owners) {
		p := Partition{Topic: tp.Topic, Partition: tp.Partition}
		c, ok := committed[tp]
		if ok {
			p.Committed = &c.Offset
		}
		if owner, ok := owners[tp]; ok {
			p.Owner = &owner
		}
		if b, ok := l.Bounds(tp); ok {
			p.setLag(b, c.Behind)
		}
		switch {
		case p.Committed == nil:
			g.Uncommitted++
		case p.Lag != nil:
			total += *p.Lag
			g.TotalLagAtLeast = g.TotalLagAtLeast || p.LagAtLeast
		case l.Partitions(tp.Topic) > 0:
			known = false
		}
		g.Partitions = append(g.Partitions, p)
	}
	if known {
		g.TotalLag = &total
	}
}

// partitionsOf lists the partitions that belong to a group, in order.
func (l *Loader) partitionsOf(g *Group, committed map[TopicPartition]Commit, owners map[TopicPartition]string) []TopicPartition {
	topics := map[string]bool{}
	for _, topic := range g.Subscribed() {
		topics[topic] = true
	}
	all := map[TopicPartition]bool{}
	for tp := range committed {
		all[tp] = true
		if !g.Tells() && g.ProtocolType == Consumer {
			topics[tp.Topic] = true
		}
	}
	for topic := range topics {
		for p := range l.Partitions(topic) {
			all[TopicPartition{topic, int32(p)}] = true
		}
	}
	for tp := range owners {
		all[tp] = true
	}
	return slices.SortedFunc(maps.Keys(all), TopicPartition.Compare)
}

// setLag computes the lag: what is there to read. What was deleted before it
// was read is not. Without a commit there is no lag, as in Kafka's tools: where
// the group would begin is its consumers' business (auto.offset.reset), and some
// read topics that they never commit.
func (p *Partition) setLag(b Bounds, counted *Count) {
	p.LogStart, p.LogEnd = &b.Start, &b.End
	if p.Committed == nil {
		return
	}
	var records *lag.Count
	if counted != nil {
		records = &lag.Count{Records: counted.Records, Approximate: counted.AtLeast}
	}
	left := lag.Of(*p.Committed, lag.Bounds(b), records)
	p.Lag, p.LagAtLeast = &left.Records, left.Approximate
	if left.Records == 0 {
		p.LagSeconds = new(float64)
	}
}

// AddLagSeconds fills in how old the first unread record of each partition is, as
// of now. No request tells that: the record itself has to be fetched. What does
// not come in time stays unknown.
func (l *Loader) AddLagSeconds(ctx context.Context, g *Group, now time.Time) error {
	from := map[TopicPartition]int64{}
	for i := range g.Partitions {
		if p := &g.Partitions[i]; p.Lag != nil && *p.Lag > 0 {
			from[TopicPartition{p.Topic, p.Partition}] = p.Next()
		}
	}
	if len(from) == 0 {
		return nil
	}
	deadline, cancel := context.WithTimeout(ctx, AgeTimeout)
	defer cancel()
	times, err := l.source.FirstTimes(deadline, from)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil && deadline.Err() == nil:
		return err
	}
	for i := range g.Partitions {
		p := &g.Partitions[i]
		if t, ok := times[TopicPartition{p.Topic, p.Partition}]; ok {
			seconds := max(now.Sub(t).Seconds(), 0)
			p.LagSeconds = &seconds
		}
	}
	return nil
}
