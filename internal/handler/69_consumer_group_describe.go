// ConsumerGroupDescribe (key 69) describes consumer groups (KIP-848) and their members.
//
//	v0 the original fields; v1 the type of each member

package handler

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/auth"
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
	allowed, denied := c.split(auth.Describe, auth.Group, req.Groups)
	for _, id := range denied {
		found[id] = undescribedGroup(id, kerr.GroupAuthorizationFailed, kerr.GroupAuthorizationFailed.Description)
	}
	c.asking(h.opts.Groups).Each(ctx, c.client(), allowed, part, func(r kmsg.Response) {
		for _, g := range r.(*kmsg.ConsumerGroupDescribeResponse).Groups {
			found[g.Group] = g
		}
	})
	for _, id := range req.Groups {
		g := found[id]
		if !c.seesTopicsOf(&g) {
			g = undescribedGroup(id, kerr.TopicAuthorizationFailed, "the group has topics that you may not describe")
		}
		if req.IncludeAuthorizedOperations && g.ErrorCode == 0 {
			g.AuthorizedOperations = c.operations(auth.Group, id)
		}
		resp.Groups = append(resp.Groups, g)
	}
	return resp, nil
}

func undescribedGroup(id string, err *kerr.Error, why string) kmsg.ConsumerGroupDescribeResponseGroup {
	g := kmsg.NewConsumerGroupDescribeResponseGroup()
	g.Group, g.ErrorCode, g.ErrorMessage = id, err.Code, &why
	return g
}

// seesTopicsOf says whether the client may describe all topics that a group's members
// have, are to have, or have subscribed to by name.
func (c *call) seesTopicsOf(g *kmsg.ConsumerGroupDescribeResponseGroup) bool {
	if c.rules() == nil {
		return true
	}
	sees := func(topic string) bool { return c.may(auth.Describe, auth.Topic, topic) }
	for i := range g.Members {
		m := &g.Members[i]
		for _, topic := range m.SubscribedTopics {
			if !sees(topic) {
				return false
			}
		}
		for _, assigned := range []kmsg.Assignment{m.Assignment, m.TargetAssignment} {
			for _, t := range assigned.TopicPartitions {
				if !sees(t.Topic) {
					return false
				}
			}
		}
	}
	return true
}
