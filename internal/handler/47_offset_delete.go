// OffsetDelete (key 47) forgets how far a group has got in some partitions.
//
//	v0 the original fields

package handler

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func (h *Handler) offsetDelete(ctx context.Context, c *call) (kmsg.Response, error) {
	req := c.req.(*kmsg.OffsetDeleteRequest)
	req.Topics, _ = distinct(req.Topics, func(t *kmsg.OffsetDeleteRequestTopic) (string, *[]kmsg.OffsetDeleteRequestTopicPartition) {
		return t.Topic, &t.Partitions
	}, func(p *kmsg.OffsetDeleteRequestTopicPartition) int32 { return p.Partition })
	return h.opts.Groups.Do(ctx, req.Group, c.client(), req), nil
}
