// ShareGroupDescribe (key 77) describes share groups (KIP-932) and their members.
//
//	v1 the original fields; v0 was for early access in Kafka 4.0, and is not served

package handler

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/auth"
)

func (h *Handler) shareGroupDescribe(ctx context.Context, c *call) (kmsg.Response, error) {
	req := c.req.(*kmsg.ShareGroupDescribeRequest)
	resp := req.ResponseKind().(*kmsg.ShareGroupDescribeResponse)
	req.GroupIDs = once(req.GroupIDs, func(id *string) string { return *id })
	found := map[string]kmsg.ShareGroupDescribeResponseGroup{}
	part := func(some []string) kmsg.Request {
		out := kmsg.NewPtrShareGroupDescribeRequest()
		out.Version, out.GroupIDs = req.Version, some
		return out
	}
	allowed, denied := c.split(auth.Describe, auth.Group, req.GroupIDs)
	for _, id := range denied {
		found[id] = undescribedShare(id, kerr.GroupAuthorizationFailed, kerr.GroupAuthorizationFailed.Description)
	}
	c.asking(h.opts.Groups).Each(ctx, c.client(), allowed, part, func(r kmsg.Response) {
		for _, g := range r.(*kmsg.ShareGroupDescribeResponse).Groups {
			found[g.GroupID] = g
		}
	})
	for _, id := range req.GroupIDs {
		g := found[id]
		if !c.seesTopicsOfShare(&g) {
			g = undescribedShare(id, kerr.TopicAuthorizationFailed, "the group has topics that you may not describe")
		}
		if req.IncludeAuthorizedOperations && g.ErrorCode == 0 {
			g.AuthorizedOperations = c.operations(auth.Group, id)
		}
		resp.Groups = append(resp.Groups, g)
	}
	return resp, nil
}

func undescribedShare(id string, err *kerr.Error, why string) kmsg.ShareGroupDescribeResponseGroup {
	g := kmsg.NewShareGroupDescribeResponseGroup()
	g.GroupID, g.ErrorCode, g.ErrorMessage = id, err.Code, &why
	return g
}

// seesTopicsOfShare says whether the client may describe all topics that a group's members read,
// or subscribe to.
func (c *call) seesTopicsOfShare(g *kmsg.ShareGroupDescribeResponseGroup) bool {
	if c.rules() == nil {
		return true
	}
	for i := range g.Members {
		m := &g.Members[i]
		for _, topic := range m.SubscribedTopicNames {
			if !c.may(auth.Describe, auth.Topic, topic) {
				return false
			}
		}
		for _, t := range m.Assignment.TopicPartitions {
			if !c.may(auth.Describe, auth.Topic, t.Topic) {
				return false
			}
		}
	}
	return true
}
