// OffsetForLeaderEpoch (key 23) tells where a leader epoch ended, so that a
// client notices when records it has are not in the log any more.
//
//	v0-1 the original fields; v2 the client's own epoch is checked; v3 replica; v4 flexible
//
// A partition may be named several times, with an epoch each; an answer has the
// size of the question.

package handler

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/auth"
)

func (h *Handler) offsetForLeaderEpoch(_ context.Context, c *call) (kmsg.Response, error) {
	req := c.req.(*kmsg.OffsetForLeaderEpochRequest)
	resp := req.ResponseKind().(*kmsg.OffsetForLeaderEpochResponse)
	for _, t := range req.Topics {
		out := kmsg.NewOffsetForLeaderEpochResponseTopic()
		out.Topic = t.Topic
		allowed := c.may(auth.Describe, auth.Topic, t.Topic)
		for _, p := range t.Partitions {
			found := kmsg.NewOffsetForLeaderEpochResponseTopicPartition()
			found.Partition, found.LeaderEpoch, found.EndOffset = p.Partition, -1, -1
			part, err := h.find(c.image, t.Topic, p.Partition)
			if !allowed {
				err = kerr.TopicAuthorizationFailed
			}
			if err == nil && req.Version >= 2 {
				err = part.CheckEpoch(p.CurrentLeaderEpoch)
			}
			if err == nil {
				err = part.CheckAsked(p.LeaderEpoch)
			}
			if err == nil {
				end := part.EpochEnd(p.LeaderEpoch)
				found.LeaderEpoch, found.EndOffset = end.Epoch, end.EndOffset
			}
			found.ErrorCode = errCode(err)
			out.Partitions = append(out.Partitions, found)
		}
		resp.Topics = append(resp.Topics, out)
	}
	return resp, nil
}
