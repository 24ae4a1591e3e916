// SyncGroup (key 14) gives members their assignment.
//
//	v1-2 the original fields; v3 group instance id; v4 flexible; v5 protocol

package handler

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/auth"
)

func (h *Handler) syncGroup(ctx context.Context, c *call) (kmsg.Response, error) {
	req := c.req.(*kmsg.SyncGroupRequest)
	if req.Version >= 5 && (req.ProtocolType == nil || req.Protocol == nil) {
		return h.opts.Groups.Fail(req, kerr.InconsistentGroupProtocol), nil // Before all else, as in Kafka.
	}
	if !c.may(auth.Read, auth.Group, req.Group) {
		return h.opts.Groups.Fail(req, kerr.GroupAuthorizationFailed), nil
	}
	resp := h.await(ctx, c, req.Group)
	h.noteAssigned(c, req, resp.(*kmsg.SyncGroupResponse))
	return resp, nil
}
