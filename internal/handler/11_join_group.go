// JoinGroup (key 11) makes a client a member of a group.
//
//	v1   rebalance timeout      v6   flexible
//	v4   member id required     v7   protocol type
//	v5   group instance id      v8   reason; v9 skip assignment

package handler

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/auth"
)

func (h *Handler) joinGroup(ctx context.Context, c *call) (kmsg.Response, error) {
	req := c.req.(*kmsg.JoinGroupRequest)
	if !c.may(auth.Read, auth.Group, req.Group) {
		return h.opts.Groups.Fail(req, kerr.GroupAuthorizationFailed), nil
	}
	return h.await(ctx, c, req.Group), nil
}
