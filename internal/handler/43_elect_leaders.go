// ElectLeaders (key 43) asks for new leaders. A partition here has one replica,
// which leads it, so there never is anything to elect.
//
//	v0 the original fields; v1 type of election and top-level error; v2 flexible
//
// A partition that was given to a broker goes to another while that one is away or
// drained. Then the preferred leader is not available, and nothing can change that.

package handler

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/auth"
	"muster/internal/metadata"
)

// preferredElection is the type of election that version 0 always means. The other
// is for partitions without a leader.
const preferredElection = 0

func (h *Handler) electLeaders(_ context.Context, c *call) (kmsg.Response, error) {
	req := c.req.(*kmsg.ElectLeadersRequest)
	resp := req.ResponseKind().(*kmsg.ElectLeadersResponse)
	allowed := c.mayCluster(auth.Alter)
	if !allowed {
		resp.ErrorCode = kerr.ClusterAuthorizationFailed.Code
	}
	preferred := req.Version == 0 || req.ElectionType == preferredElection
	// Without topics all are meant, and those without need are not told.
	topics, _ := distinct(req.Topics, func(t *kmsg.ElectLeadersRequestTopic) (string, *[]int32) { return t.Topic, &t.Partitions }, itself)
	for _, t := range topics {
		out := kmsg.NewElectLeadersResponseTopic()
		out.Topic = t.Topic
		for _, index := range t.Partitions {
			part := kmsg.NewElectLeadersResponseTopicPartition()
			part.Partition, part.ErrorCode = index, election(c.image.Topic(t.Topic), index, preferred).Code
			if !allowed {
				part.ErrorCode = kerr.ClusterAuthorizationFailed.Code
			}
			out.Partitions = append(out.Partitions, part)
		}
		resp.Topics = append(resp.Topics, out)
	}
	return resp, nil
}

// election is the outcome of an election, whoever leads the partition.
func election(t *metadata.Topic, index int32, preferred bool) *kerr.Error {
	switch {
	case t == nil || index < 0 || int(index) >= len(t.Partitions):
		return kerr.UnknownTopicOrPartition
	case preferred && int(index) < len(t.Preferred) && t.Preferred[index] != metadata.NoBroker && t.Preferred[index] != t.Partitions[index].Leader:
		return kerr.PreferredLeaderNotAvailable
	}
	return kerr.ElectionNotNeeded
}
