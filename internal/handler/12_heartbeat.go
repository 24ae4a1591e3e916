// Heartbeat (key 12) tells that a member is there.
//
//	v1-2 the original fields; v3 group instance id; v4 flexible

package handler

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func (h *Handler) heartbeat(ctx context.Context, c *call) (kmsg.Response, error) {
	req := c.req.(*kmsg.HeartbeatRequest)
	return h.opts.Groups.Do(ctx, req.Group, c.client(), req), nil
}
