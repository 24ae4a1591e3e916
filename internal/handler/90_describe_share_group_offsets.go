// DescribeShareGroupOffsets (key 90) tells where the partitions of share groups (KIP-932) begin:
// all records before that are done with.
//
//	v0 the original fields; v1 the lag

package handler

import (
	"context"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/auth"
)

func (h *Handler) describeShareGroupOffsets(ctx context.Context, c *call) (kmsg.Response, error) {
	req := c.req.(*kmsg.DescribeShareGroupOffsetsRequest)
	resp := req.ResponseKind().(*kmsg.DescribeShareGroupOffsetsResponse)
	req.Groups = once(req.Groups, func(g *kmsg.DescribeShareGroupOffsetsRequestGroup) string { return g.GroupID })
	wanted, denied := map[string]kmsg.DescribeShareGroupOffsetsRequestGroup{}, map[string][]kmsg.DescribeShareGroupOffsetsResponseGroupTopic{}
	var ids []string
	for _, g := range req.Groups {
		if !c.may(auth.Describe, auth.Group, g.GroupID) {
			out := kmsg.NewDescribeShareGroupOffsetsResponseGroup()
			out.GroupID, out.ErrorCode = g.GroupID, kerr.GroupAuthorizationFailed.Code
			resp.Groups = append(resp.Groups, out)
			continue
		}
		g.Topics, denied[g.GroupID] = c.splitShareOffsets(g.Topics)
		wanted[g.GroupID] = g
		ids = append(ids, g.GroupID)
	}
	part := func(some []string) kmsg.Request {
		out := kmsg.NewPtrDescribeShareGroupOffsetsRequest()
		out.Version = req.Version
		for _, id := range some {
			out.Groups = append(out.Groups, wanted[id])
		}
		return out
	}
	c.asking(h.opts.Groups).Each(ctx, c.client(), ids, part, func(r kmsg.Response) {
		for _, g := range r.(*kmsg.DescribeShareGroupOffsetsResponse).Groups {
			if g.Topics = slices.DeleteFunc(g.Topics, func(t kmsg.DescribeShareGroupOffsetsResponseGroupTopic) bool {
				return !c.sees(auth.Describe, auth.Topic, t.Topic) // Where all are asked for they are left out.
			}); g.ErrorCode == 0 {
				g.Topics = append(g.Topics, denied[g.GroupID]...)
			}
			resp.Groups = append(resp.Groups, g)
		}
	})
	return resp, nil
}

// splitShareOffsets parts the topics that the client may describe from the others, and returns
// the answers for those.
func (c *call) splitShareOffsets(topics []kmsg.DescribeShareGroupOffsetsRequestGroupTopic) (allowed []kmsg.DescribeShareGroupOffsetsRequestGroupTopic, denied []kmsg.DescribeShareGroupOffsetsResponseGroupTopic) {
	if topics == nil {
		return nil, nil
	}
	topics, _ = distinct(topics, func(t *kmsg.DescribeShareGroupOffsetsRequestGroupTopic) (string, *[]int32) {
		return t.Topic, &t.Partitions
	}, func(n *int32) int32 { return *n })
	allowed = []kmsg.DescribeShareGroupOffsetsRequestGroupTopic{} // None are not all.
	for _, t := range topics {
		if c.may(auth.Describe, auth.Topic, t.Topic) {
			allowed = append(allowed, t)
			continue
		}
		out := kmsg.NewDescribeShareGroupOffsetsResponseGroupTopic()
		out.Topic = t.Topic
		for _, n := range t.Partitions {
			p := kmsg.NewDescribeShareGroupOffsetsResponseGroupTopicPartition()
			p.Partition, p.StartOffset, p.Lag, p.ErrorCode = n, -1, -1, kerr.TopicAuthorizationFailed.Code
			out.Partitions = append(out.Partitions, p)
		}
		denied = append(denied, out)
	}
	return allowed, denied
}
