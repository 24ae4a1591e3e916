package main

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

var errNoAnswer = errors.New("the broker did not answer")

const (
	// ageTimeout is how long we look for the first unread records.
	ageTimeout = 3 * time.Second
	// ageFetchBytes is how much of a partition is fetched for the sake of one
	// record; a broker sends larger batches too, one at a time.
	ageFetchBytes = 16 << 10
)

// addPartitions fills in the partitions of a group with their lag. Those without
// a commit are there too if the group would read them: then its members
// subscribe to the topic or, when we are not told of members, it has committed
// offsets of the topic.
func (l *groupLoader) addPartitions(g *groupState, fetched kadm.OffsetResponses) {
	committed, owners := map[topicPartition]int64{}, g.owners()
	topics := map[string]bool{}
	for _, topic := range g.subscribed() {
		topics[topic] = true
	}
	fetched.Each(func(o kadm.OffsetResponse) {
		if o.Err == nil && o.At >= 0 {
			committed[topicPartition{o.Topic, o.Partition}] = o.At
			if !g.tells() && g.ProtocolType == typeConsumer {
				topics[o.Topic] = true
			}
		}
	})
	all := map[topicPartition]bool{}
	for topic := range topics {
		for p := range l.logs.count[topic] {
			all[topicPartition{topic, int32(p)}] = true
		}
	}
	for tp := range committed {
		all[tp] = true
	}
	for tp := range owners {
		all[tp] = true
	}
	var total int64
	known := true
	for _, tp := range slices.SortedFunc(maps.Keys(all), compareTopicPartitions) {
		p := groupPartition{Topic: tp.topic, Partition: tp.partition}
		if at, ok := committed[tp]; ok {
			p.Committed = &at
		}
		if owner, ok := owners[tp]; ok {
			p.Owner = &owner
		}
		b, ok := l.logs.bounds[tp]
		if ok {
			p.setLag(b)
		}
		switch {
		case p.Committed == nil:
			g.Uncommitted++
		case p.Lag != nil:
			total += *p.Lag
		case l.logs.count[tp.topic] > 0:
			known = false
		}
		g.Partitions = append(g.Partitions, p)
	}
	if known {
		g.TotalLag = &total
	}
}

// setLag computes the lag: what is there to read. What was deleted before it
// was read is not. Without a commit there is no lag, as in Kafka's tools: where
// the group would begin is its consumers' business (auto.offset.reset), and some
// read topics that they never commit.
func (p *groupPartition) setLag(b bounds) {
	p.LogStart, p.LogEnd = &b.start, &b.end
	if p.Committed == nil {
		return
	}
	lag := max(b.end-p.next(), 0)
	p.Lag = &lag
	if lag == 0 {
		p.LagSeconds = new(float64)
	}
}

// next is the offset that the group reads next, for a partition that has a lag.
func (p *groupPartition) next() int64 { return max(*p.Committed, *p.LogStart) }

func compareTopicPartitions(a, b topicPartition) int {
	return cmp.Or(cmp.Compare(a.topic, b.topic), cmp.Compare(a.partition, b.partition))
}

// owners returns the member id that each assigned partition has.
func (g *groupState) owners() map[topicPartition]string {
	out := map[topicPartition]string{}
	for _, m := range g.Members {
		for _, t := range m.Assigned {
			for _, p := range t.Partitions {
				out[topicPartition{t.Topic, p}] = m.Member
			}
		}
	}
	return out
}

// addLagSeconds fills in how old the first unread record of each partition is.
// No request tells that: the record itself has to be fetched. What does not come
// in time stays unknown.
func (g *groupState) addLagSeconds(ctx context.Context, flags *clientFlags) error {
	from := map[topicPartition]int64{}
	for i := range g.Partitions {
		if p := &g.Partitions[i]; p.Lag != nil && *p.Lag > 0 {
			from[topicPartition{p.Topic, p.Partition}] = p.next()
		}
	}
	if len(from) == 0 {
		return nil
	}
	deadline, cancel := context.WithTimeout(ctx, ageTimeout)
	defer cancel()
	now := time.Now()
	times, err := firstTimes(deadline, flags, from)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil && deadline.Err() == nil:
		return err
	}
	for i := range g.Partitions {
		p := &g.Partitions[i]
		if t, ok := times[topicPartition{p.Topic, p.Partition}]; ok {
			seconds := max(now.Sub(t).Seconds(), 0)
			p.LagSeconds = &seconds
		}
	}
	return nil
}

// firstTimes returns the timestamps of the first record at or after an offset of
// each partition, as far as they come before the deadline.
func firstTimes(ctx context.Context, flags *clientFlags, from map[topicPartition]int64) (map[topicPartition]time.Time, error) {
	client, err := flags.connect(ctx, append(consumerOptions(kgo.ReadUncommitted()), kgo.FetchMaxPartitionBytes(ageFetchBytes))...)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	assign := map[string]map[int32]kgo.Offset{}
	for tp, offset := range from {
		if assign[tp.topic] == nil {
			assign[tp.topic] = map[int32]kgo.Offset{}
		}
		assign[tp.topic][tp.partition] = kgo.NewOffset().At(offset)
	}
	client.AddConsumePartitions(assign)
	out, seen := map[topicPartition]time.Time{}, map[topicPartition]bool{}
	for len(seen) < len(from) && ctx.Err() == nil {
		pause := map[string][]int32{}
		client.PollFetches(ctx).EachPartition(func(p kgo.FetchTopicPartition) {
			tp := topicPartition{p.Topic, p.Partition}
			if len(p.Records) == 0 || seen[tp] {
				return
			}
			seen[tp] = true
			pause[p.Topic] = append(pause[p.Topic], p.Partition)
			if t := p.Records[0].Timestamp; t.UnixMilli() >= 0 {
				out[tp] = t
			}
		})
		client.PauseFetchPartitions(pause)
	}
	return out, nil
}
