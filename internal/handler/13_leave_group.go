// LeaveGroup (key 13) removes members from a group.
//
//	v1-2 the original fields; v3 several members; v4 flexible; v5 reason

package handler

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func (h *Handler) leaveGroup(ctx context.Context, c *call) (kmsg.Response, error) {
	req := c.req.(*kmsg.LeaveGroupRequest)
	return h.opts.Groups.Do(ctx, req.Group, c.client(), req), nil
}
