// AlterShareGroupOffsets (key 91) has the partitions of a share group without members (KIP-932)
// begin at other offsets.
//
//	v0 the original fields

package handler

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/auth"
)

func (h *Handler) alterShareGroupOffsets(ctx context.Context, c *call) (kmsg.Response, error) {
	req := c.req.(*kmsg.AlterShareGroupOffsetsRequest)
	if !c.may(auth.Read, auth.Group, req.GroupID) {
		return h.opts.Groups.Fail(req, kerr.GroupAuthorizationFailed), nil
	}
	var denied []kmsg.AlterShareGroupOffsetsResponseTopic
	topics, _ := distinct(req.Topics, func(t *kmsg.AlterShareGroupOffsetsRequestTopic) (string, *[]kmsg.AlterShareGroupOffsetsRequestTopicPartition) {
		return t.Topic, &t.Partitions
	}, func(p *kmsg.AlterShareGroupOffsetsRequestTopicPartition) int32 { return p.Partition })
	req.Topics = nil
	for _, t := range topics {
		if c.may(auth.Read, auth.Topic, t.Topic) {
			req.Topics = append(req.Topics, t)
			continue
		}
		out := kmsg.NewAlterShareGroupOffsetsResponseTopic()
		out.Topic = t.Topic
		for _, p := range t.Partitions {
			e := kmsg.NewAlterShareGroupOffsetsResponseTopicPartition()
			e.Partition, e.ErrorCode = p.Partition, kerr.TopicAuthorizationFailed.Code
			out.Partitions = append(out.Partitions, e)
		}
		denied = append(denied, out)
	}
	resp := c.asking(h.opts.Groups).Do(ctx, req.GroupID, c.client(), req).(*kmsg.AlterShareGroupOffsetsResponse)
	if resp.ErrorCode == 0 {
		resp.Topics = append(resp.Topics, denied...)
	}
	return resp, nil
}
