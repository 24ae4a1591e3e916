package source

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/watch/groupview"
)

// fetchShareOffsets asks where the partitions of share groups begin, and how many records they
// are not done with: what other groups commit.
func fetchShareOffsets(ctx context.Context, client *kgo.Client, names []string) map[string]groupOffsets {
	out := map[string]groupOffsets{}
	if len(names) == 0 {
		return out
	}
	req := kmsg.NewPtrDescribeShareGroupOffsetsRequest()
	for _, name := range names {
		g := kmsg.NewDescribeShareGroupOffsetsRequestGroup()
		g.GroupID = name
		req.Groups = append(req.Groups, g)
	}
	for _, shard := range client.RequestSharded(ctx, req) {
		if shard.Err != nil {
			for _, g := range shard.Req.(*kmsg.DescribeShareGroupOffsetsRequest).Groups {
				out[g.GroupID] = groupOffsets{err: shard.Err}
			}
			continue
		}
		for _, g := range shard.Resp.(*kmsg.DescribeShareGroupOffsetsResponse).Groups {
			out[g.GroupID] = groupOffsets{shareOffsetsOf(&g), kerr.ErrorForCode(g.ErrorCode)}
		}
	}
	return out
}

func shareOffsetsOf(g *kmsg.DescribeShareGroupOffsetsResponseGroup) map[TopicPartition]groupview.Commit {
	out := map[TopicPartition]groupview.Commit{}
	for _, t := range g.Topics {
		for _, p := range t.Partitions {
			if p.ErrorCode != 0 || p.StartOffset < 0 {
				continue
			}
			commit := groupview.Commit{Offset: p.StartOffset}
			if p.Lag >= 0 {
				commit.Behind = &groupview.Count{Records: p.Lag}
			}
			out[TopicPartition{Topic: t.Topic, Partition: p.Partition}] = commit
		}
	}
	return out
}
