package main

import (
	"context"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// The timestamps that stand for the ends of a partition in ListOffsets.
const (
	atLogEnd   = -1
	atLogStart = -2
)

// topicLogs knows the partitions of topics and where their logs begin and end.
// It asks for each topic once, also when a thousand groups read it.
type topicLogs struct {
	client *kgo.Client
	admin  *kadm.Client
	count  map[string]int // Partitions of a topic, 0 if there is no such topic.
	bounds map[topicPartition]bounds
}

func newTopicLogs(client *kgo.Client) *topicLogs {
	return &topicLogs{client, kadm.NewClient(client), map[string]int{}, map[topicPartition]bounds{}}
}

// load asks for those topics that are not known yet.
func (l *topicLogs) load(ctx context.Context, topics []string) error {
	var missing []string
	for _, topic := range topics {
		if _, known := l.count[topic]; !known && topic != "" {
			l.count[topic] = 0
			missing = append(missing, topic)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	details, err := l.admin.ListTopicsWithInternal(ctx, missing...)
	if err != nil {
		return plain(err)
	}
	set := kadm.TopicsSet{}
	for _, d := range details {
		if d.Err == nil {
			l.count[d.Topic] = len(d.Partitions)
			set.Add(d.Topic, d.Partitions.Numbers()...)
		}
	}
	// First the start and then the end, so that a log never seems to end before
	// it begins.
	starts, err := listOffsets(ctx, l.client, set, atLogStart)
	if err != nil {
		return err
	}
	ends, err := listOffsets(ctx, l.client, set, atLogEnd)
	if err != nil {
		return err
	}
	for tp, start := range starts {
		if end, ok := ends[tp]; ok {
			l.bounds[tp] = bounds{start: start, end: max(end, start)}
		}
	}
	return nil
}

// listOffsets asks for the offset of a time in partitions, those of internal
// topics too. A partition that has no answer, or no record of that time or
// later, is absent: one that has no leader must not hide all others.
func listOffsets(ctx context.Context, client *kgo.Client, set kadm.TopicsSet, timestamp int64) (map[topicPartition]int64, error) {
	out := map[topicPartition]int64{}
	req := kmsg.NewPtrListOffsetsRequest()
	for _, t := range set.Sorted() {
		rt := kmsg.NewListOffsetsRequestTopic()
		rt.Topic = t.Topic
		for _, p := range t.Partitions {
			rp := kmsg.NewListOffsetsRequestTopicPartition()
			rp.Partition, rp.Timestamp = p, timestamp
			rt.Partitions = append(rt.Partitions, rp)
		}
		req.Topics = append(req.Topics, rt)
	}
	if len(req.Topics) == 0 {
		return out, nil
	}
	answered := false
	var failed error
	for _, shard := range client.RequestSharded(ctx, req) {
		if shard.Err != nil {
			failed = shard.Err
			continue
		}
		answered = true
		for _, t := range shard.Resp.(*kmsg.ListOffsetsResponse).Topics {
			for _, p := range t.Partitions {
				if p.ErrorCode == 0 && p.Offset >= 0 {
					out[topicPartition{t.Topic, p.Partition}] = p.Offset
				}
			}
		}
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if failed != nil && !answered {
		return nil, plain(failed)
	}
	return out, nil
}
