// ListPartitionReassignments (key 46) lists partitions on their way to other
// brokers. There never are any.
//
//	v0 flexible

package handler

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func (h *Handler) listPartitionReassignments(_ context.Context, c *call) (kmsg.Response, error) {
	return c.req.ResponseKind(), nil
}
