// Heartbeat (key 12) tells that a member is there.
//
//	v1-2 the original fields; v3 group instance id; v4 flexible

package handler

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/auth"
)

func (h *Handler) heartbeat(ctx context.Context, c *call) (kmsg.Response, error) {
	req := c.req.(*kmsg.HeartbeatRequest)
	if !c.may(auth.Read, auth.Group, req.Group) {
		return h.opts.Groups.Fail(req, kerr.GroupAuthorizationFailed), nil
	}
	return c.asking(h.opts.Groups).Do(ctx, req.Group, c.asks(), req), nil
}
