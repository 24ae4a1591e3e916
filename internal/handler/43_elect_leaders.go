// ElectLeaders (key 43) asks for new leaders. A partition here has one replica,
// which leads it, so there never is anything to elect.
//
//	v0 the original fields; v1 type of election and top-level error; v2 flexible

package handler

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/auth"
)

func (h *Handler) electLeaders(_ context.Context, c *call) (kmsg.Response, error) {
	req := c.req.(*kmsg.ElectLeadersRequest)
	resp := req.ResponseKind().(*kmsg.ElectLeadersResponse)
	allowed := c.mayCluster(auth.Alter)
	if !allowed {
		resp.ErrorCode = kerr.ClusterAuthorizationFailed.Code
	}
	// Without topics all are meant, and those without need are not told.
	topics, _ := distinct(req.Topics, func(t *kmsg.ElectLeadersRequestTopic) (string, *[]int32) { return t.Topic, &t.Partitions }, itself)
	for _, t := range topics {
		out := kmsg.NewElectLeadersResponseTopic()
		out.Topic = t.Topic
		for _, index := range t.Partitions {
			part := kmsg.NewElectLeadersResponseTopicPartition()
			part.Partition, part.ErrorCode = index, kerr.ElectionNotNeeded.Code
			if _, err := h.find(c.image, t.Topic, index); err != nil {
				part.ErrorCode = err.Code
			}
			if !allowed {
				part.ErrorCode = kerr.ClusterAuthorizationFailed.Code
			}
			out.Partitions = append(out.Partitions, part)
		}
		resp.Topics = append(resp.Topics, out)
	}
	return resp, nil
}
