package main

import (
	"context"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/protocol"
	"muster/internal/watch/groupview"
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
	return listOffsetsFor(ctx, client, set, timestamp, readUncommitted)
}

// The isolation levels of a request.
const (
	readUncommitted int8 = iota
	readCommitted
)

func listOffsetsFor(ctx context.Context, client *kgo.Client, set kadm.TopicsSet, timestamp int64, isolation int8) (map[topicPartition]int64, error) {
	out := map[topicPartition]int64{}
	req := kmsg.NewPtrListOffsetsRequest()
	req.IsolationLevel = isolation
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

// groupOffsets is what a group has committed, or why that is not known.
type groupOffsets struct {
	committed map[topicPartition]groupview.Commit
	err       error
}

// fetchOffsets asks for all offsets that groups have committed. A muster broker
// adds how many records are behind them, where offsets do not tell.
func fetchOffsets(ctx context.Context, client *kgo.Client, names []string) map[string]groupOffsets {
	req := kmsg.NewPtrOffsetFetchRequest()
	for _, name := range names {
		g := kmsg.NewOffsetFetchRequestGroup()
		g.Group = name
		protocol.AskBehind(&g.UnknownTags)
		req.Groups = append(req.Groups, g)
	}
	out := map[string]groupOffsets{}
	for _, shard := range client.RequestSharded(ctx, req) {
		if shard.Err != nil {
			for _, g := range shard.Req.(*kmsg.OffsetFetchRequest).Groups {
				out[g.Group] = groupOffsets{err: shard.Err}
			}
			continue
		}
		for _, g := range shard.Resp.(*kmsg.OffsetFetchResponse).Groups {
			out[g.Group] = groupOffsets{committedOf(&g), kerr.ErrorForCode(g.ErrorCode)}
		}
	}
	return out
}

func committedOf(g *kmsg.OffsetFetchResponseGroup) map[topicPartition]groupview.Commit {
	out := map[topicPartition]groupview.Commit{}
	for _, t := range g.Topics {
		for _, p := range t.Partitions {
			if p.ErrorCode != 0 || p.Offset < 0 {
				continue
			}
			commit := groupview.Commit{Offset: p.Offset}
			if b := protocol.GetBehind(&p.UnknownTags); b != nil {
				commit.Behind = &groupview.Count{Records: b.Records, AtLeast: b.AtLeast}
			}
			out[topicPartition{Topic: t.Topic, Partition: p.Partition}] = commit
		}
	}
	return out
}
