// DescribeGroups (key 15) describes groups and their members.
//
//	v1-2 the original fields; v3 authorized operations; v4 group instance id; v5 flexible;
//	v6 an unknown group is an error

package handler

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/auth"
)

func (h *Handler) describeGroups(ctx context.Context, c *call) (kmsg.Response, error) {
	req := c.req.(*kmsg.DescribeGroupsRequest)
	resp := req.ResponseKind().(*kmsg.DescribeGroupsResponse)
	req.Groups = once(req.Groups, func(id *string) string { return *id })
	found := map[string]kmsg.DescribeGroupsResponseGroup{}
	part := func(some []string) kmsg.Request {
		out := kmsg.NewPtrDescribeGroupsRequest()
		out.Version, out.Groups = req.Version, some
		return out
	}
	allowed, denied := c.split(auth.Describe, auth.Group, req.Groups)
	for _, id := range denied {
		g := kmsg.NewDescribeGroupsResponseGroup()
		g.Group, g.ErrorCode = id, kerr.GroupAuthorizationFailed.Code
		found[id] = g
	}
	c.asking(h.opts.Groups).Each(ctx, c.client(), allowed, part, func(r kmsg.Response) {
		for _, g := range r.(*kmsg.DescribeGroupsResponse).Groups {
			found[g.Group] = g
		}
	})
	for _, id := range req.Groups {
		g := found[id]
		if req.IncludeAuthorizedOperations && g.ErrorCode == 0 {
			g.AuthorizedOperations = c.operations(auth.Group, id)
		}
		resp.Groups = append(resp.Groups, g)
	}
	return resp, nil
}
