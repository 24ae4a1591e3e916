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
					out[topicPartition{Topic: t.Topic, Partition: p.Partition}] = p.Offset
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
