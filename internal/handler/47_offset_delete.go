// OffsetDelete (key 47) forgets how far a group has got in some partitions.
//
//	v0 the original fields

package handler

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/auth"
)

func (h *Handler) offsetDelete(ctx context.Context, c *call) (kmsg.Response, error) {
	req := c.req.(*kmsg.OffsetDeleteRequest)
	req.Topics, _ = distinct(req.Topics, func(t *kmsg.OffsetDeleteRequestTopic) (string, *[]kmsg.OffsetDeleteRequestTopicPartition) {
		return t.Topic, &t.Partitions
	}, func(p *kmsg.OffsetDeleteRequestTopicPartition) int32 { return p.Partition })
	if !c.may(auth.Delete, auth.Group, req.Group) {
		return h.opts.Groups.Fail(req, kerr.GroupAuthorizationFailed), nil
	}
	allowed, denied := c.splitDeleted(req.Topics)
	req.Topics = allowed
	resp := req.ResponseKind().(*kmsg.OffsetDeleteResponse)
	if len(allowed) > 0 || len(denied) == 0 {
		resp = c.asking(h.opts.Groups).Do(ctx, req.Group, c.client(), req).(*kmsg.OffsetDeleteResponse)
	}
	if resp.ErrorCode == 0 {
		resp.Topics = append(resp.Topics, denied...)
	}
	return resp, nil
}

// splitDeleted parts the topics that the client may read from the others, and returns
// the answers for those.
func (c *call) splitDeleted(topics []kmsg.OffsetDeleteRequestTopic) (allowed []kmsg.OffsetDeleteRequestTopic, denied []kmsg.OffsetDeleteResponseTopic) {
	for _, t := range topics {
		if c.may(auth.Read, auth.Topic, t.Topic) {
			allowed = append(allowed, t)
			continue
		}
		out := kmsg.NewOffsetDeleteResponseTopic()
		out.Topic = t.Topic
		for _, p := range t.Partitions {
			e := kmsg.NewOffsetDeleteResponseTopicPartition()
			e.Partition, e.ErrorCode = p.Partition, kerr.TopicAuthorizationFailed.Code
			out.Partitions = append(out.Partitions, e)
		}
		denied = append(denied, out)
	}
	return allowed, denied
}
