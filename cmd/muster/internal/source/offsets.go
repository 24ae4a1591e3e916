package source

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/cmd/muster/internal/cli"
	"muster/internal/protocol"
	"muster/internal/watch/groupview"
)

// The timestamps that stand for the ends of a partition in ListOffsets.
const (
	AtLogEnd   = -1
	atLogStart = -2
)

// ListOffsets asks for the offset of a time in partitions, those of internal
// topics too. A partition that has no answer, or no record of that time or
// later, is absent: one that has no leader must not hide all others.
func ListOffsets(ctx context.Context, client *kgo.Client, set kadm.TopicsSet, timestamp int64) (map[TopicPartition]int64, error) {
	return ListOffsetsFor(ctx, client, set, timestamp, readUncommitted)
}

// The isolation levels of a request.
const (
	readUncommitted int8 = iota
	ReadCommitted
)

func ListOffsetsFor(ctx context.Context, client *kgo.Client, set kadm.TopicsSet, timestamp int64, isolation int8) (map[TopicPartition]int64, error) {
	out := map[TopicPartition]int64{}
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
					out[TopicPartition{Topic: t.Topic, Partition: p.Partition}] = p.Offset
				}
			}
		}
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if failed != nil && !answered {
		return nil, cli.Plain(failed)
	}
	return out, nil
}

// groupOffsets is what a group has committed, or why that is not known.
type groupOffsets struct {
	committed map[TopicPartition]groupview.Commit
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

func committedOf(g *kmsg.OffsetFetchResponseGroup) map[TopicPartition]groupview.Commit {
	out := map[TopicPartition]groupview.Commit{}
	for _, t := range g.Topics {
		for _, p := range t.Partitions {
			if p.ErrorCode != 0 || p.Offset < 0 {
				continue
			}
			commit := groupview.Commit{Offset: p.Offset}
			if b := protocol.GetBehind(&p.UnknownTags); b != nil {
				commit.Behind = &groupview.Count{Records: b.Records, AtLeast: b.AtLeast}
			}
			out[TopicPartition{Topic: t.Topic, Partition: p.Partition}] = commit
		}
	}
	return out
}

func ConsumerOptions(isolation kgo.IsolationLevel) []kgo.Opt {
	return []kgo.Opt{
		kgo.FetchIsolationLevel(isolation),
		// To see how far we are: a control record may be the last.
		kgo.KeepControlRecords(),
		// A new partition is fetched once the fetch that is waiting has ended.
		// This is the default of Kafka's own consumer; the client's is 5 s.
		kgo.FetchMaxWait(500 * time.Millisecond),
	}
}

type TopicPartition = groupview.TopicPartition
