// DeleteGroups (key 42) deletes groups that have no members.
//
//	v0-1 the original fields; v2 flexible

package handler

import (
	"context"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/auth"
)

func (h *Handler) deleteGroups(ctx context.Context, c *call) (kmsg.Response, error) {
	req := c.req.(*kmsg.DeleteGroupsRequest)
	resp := req.ResponseKind().(*kmsg.DeleteGroupsResponse)
	part := func(some []string) kmsg.Request {
		out := kmsg.NewPtrDeleteGroupsRequest()
		out.Version, out.Groups = req.Version, some
		return out
	}
	slices.Sort(req.Groups)
	allowed, denied := c.split(auth.Delete, auth.Group, slices.Compact(req.Groups))
	c.asking(h.opts.Groups).Each(ctx, c.client(), allowed, part, func(r kmsg.Response) {
		resp.Groups = append(resp.Groups, r.(*kmsg.DeleteGroupsResponse).Groups...)
	})
	for _, id := range denied {
		g := kmsg.NewDeleteGroupsResponseGroup()
		g.Group, g.ErrorCode = id, kerr.GroupAuthorizationFailed.Code
		resp.Groups = append(resp.Groups, g)
	}
	h.noteDeleted(ctx, resp)
	return resp, nil
}
