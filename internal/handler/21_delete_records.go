// DeleteRecords (key 21) deletes the records before an offset.
//
//	v0-1 the original fields; v2 flexible
//
// Not those of internal topics, as in Kafka: groups would lose their offsets.

package handler

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/auth"
	"muster/internal/metadata"
)

func (h *Handler) deleteRecords(ctx context.Context, c *call) (kmsg.Response, error) {
	req := c.req.(*kmsg.DeleteRecordsRequest)
	resp := req.ResponseKind().(*kmsg.DeleteRecordsResponse)
	topics, _ := distinct(req.Topics, func(t *kmsg.DeleteRecordsRequestTopic) (string, *[]kmsg.DeleteRecordsRequestTopicPartition) {
		return t.Topic, &t.Partitions
	}, func(p *kmsg.DeleteRecordsRequestTopicPartition) int32 { return p.Partition })
	for _, t := range topics {
		out := kmsg.NewDeleteRecordsResponseTopic()
		out.Topic = t.Topic
		allowed := c.may(auth.Delete, auth.Topic, t.Topic)
		for _, p := range t.Partitions {
			done := kmsg.NewDeleteRecordsResponseTopicPartition()
			done.Partition, done.LowWatermark = p.Partition, -1
			part, err := h.find(c.image, t.Topic, p.Partition)
			if metadata.IsInternal(t.Topic) {
				err = kerr.InvalidTopicException
			}
			if !allowed {
				err = kerr.TopicAuthorizationFailed
			}
			if err == nil && !c.image.Topic(t.Topic).Config.Delete {
				err = kerr.PolicyViolation // A compacted topic keeps the newest record of each key.
			}
			if err == nil {
				done.LowWatermark, err = part.DeleteBefore(ctx, p.Offset)
			}
			done.ErrorCode = errCode(err)
			out.Partitions = append(out.Partitions, done)
		}
		resp.Topics = append(resp.Topics, out)
	}
	return resp, nil
}
