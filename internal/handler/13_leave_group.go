// LeaveGroup (key 13) removes members from a group.
//
//	v1-2 the original fields; v3 several members; v4 flexible; v5 reason

package handler

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/auth"
)

func (h *Handler) leaveGroup(ctx context.Context, c *call) (kmsg.Response, error) {
	req := c.req.(*kmsg.LeaveGroupRequest)
	if !c.may(auth.Read, auth.Group, req.Group) {
		return h.opts.Groups.Fail(req, kerr.GroupAuthorizationFailed), nil
	}
	return c.asking(h.opts.Groups).Do(ctx, req.Group, c.client(), req), nil
}
