// ListPartitionReassignments (key 46) lists partitions on their way to other
// brokers. There never are any: a partition moves at once.
//
//	v0 flexible

package handler

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/auth"
)

func (h *Handler) listPartitionReassignments(_ context.Context, c *call) (kmsg.Response, error) {
	resp := c.req.ResponseKind().(*kmsg.ListPartitionReassignmentsResponse)
	if !c.mayCluster(auth.Describe) {
		resp.ErrorCode = kerr.ClusterAuthorizationFailed.Code
	}
	return resp, nil
}
