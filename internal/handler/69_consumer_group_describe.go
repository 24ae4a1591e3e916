// ConsumerGroupDescribe (key 69) describes consumer groups (KIP-848) and their members.
//
//	v0 the original fields; v1 the type of each member

package handler

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func (h *Handler) consumerGroupDescribe(ctx context.Context, c *call) (kmsg.Response, error) {
	req := c.req.(*kmsg.ConsumerGroupDescribeRequest)
	resp := req.ResponseKind().(*kmsg.ConsumerGroupDescribeResponse)
	req.Groups = once(req.Groups, func(id *string) string { return *id })
	found := map[string]kmsg.ConsumerGroupDescribeResponseGroup{}
	part := func(some []string) kmsg.Request {
		out := kmsg.NewPtrConsumerGroupDescribeRequest()
		out.Version, out.Groups = req.Version, some
		return out
	}
	h.opts.Groups.Each(ctx, c.client(), req.Groups, part, func(r kmsg.Response) {
		for _, g := range r.(*kmsg.ConsumerGroupDescribeResponse).Groups {
			found[g.Group] = g
		}
	})
	for _, id := range req.Groups {
		g := found[id]
		if req.IncludeAuthorizedOperations {
			g.AuthorizedOperations = groupOperations
		}
		resp.Groups = append(resp.Groups, g)
	}
	return resp, nil
}
