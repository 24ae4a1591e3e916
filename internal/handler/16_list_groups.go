// ListGroups (key 16) lists groups.
//
//	v1-2 as ever; v3 flexible; v4 filter by state; v5 by type

package handler

import (
	"cmp"
	"context"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func (h *Handler) listGroups(ctx context.Context, c *call) (kmsg.Response, error) {
	req := c.req.(*kmsg.ListGroupsRequest)
	resp := req.ResponseKind().(*kmsg.ListGroupsResponse)
	h.opts.Groups.All(ctx, c.client(), func() kmsg.Request { return req }, func(r kmsg.Response) {
		part := r.(*kmsg.ListGroupsResponse)
		resp.Groups = append(resp.Groups, part.Groups...)
		if part.ErrorCode != 0 {
			resp.ErrorCode = part.ErrorCode
		}
	})
	slices.SortFunc(resp.Groups, func(a, b kmsg.ListGroupsResponseGroup) int { return cmp.Compare(a.Group, b.Group) })
	return resp, nil
}
