// StreamsGroupDescribe (key 89) describes streams groups (KIP-1071), their topologies and
// their members.
//
//	v0 the original fields
//
// Version 1 is left out: it asks for descriptions of topologies.

package handler

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/auth"
)

func (h *Handler) streamsGroupDescribe(ctx context.Context, c *call) (kmsg.Response, error) {
	req := c.req.(*kmsg.StreamsGroupDescribeRequest)
	resp := req.ResponseKind().(*kmsg.StreamsGroupDescribeResponse)
	req.Groups = once(req.Groups, func(id *string) string { return *id })
	found := map[string]kmsg.StreamsGroupDescribeResponseGroup{}
	part := func(some []string) kmsg.Request {
		out := kmsg.NewPtrStreamsGroupDescribeRequest()
		out.Version, out.Groups = req.Version, some
		return out
	}
	allowed, denied := c.split(auth.Describe, auth.Group, req.Groups)
	for _, id := range denied {
		found[id] = undescribedStreams(id, kerr.GroupAuthorizationFailed, kerr.GroupAuthorizationFailed.Description)
	}
	c.asking(h.opts.Groups).Each(ctx, c.client(), allowed, part, func(r kmsg.Response) {
		for _, g := range r.(*kmsg.StreamsGroupDescribeResponse).Groups {
			found[g.Group] = g
		}
	})
	for _, id := range req.Groups {
		g := found[id]
		if !c.seesTopology(g.Topology) {
			g = undescribedStreams(id, kerr.TopicAuthorizationFailed, "the group has topics that you may not describe")
		}
		if req.IncludeAuthorizedOperations && g.ErrorCode == 0 {
			g.AuthorizedOperations = c.operations(auth.Group, id)
		}
		resp.Groups = append(resp.Groups, g)
	}
	return resp, nil
}

func undescribedStreams(id string, err *kerr.Error, why string) kmsg.StreamsGroupDescribeResponseGroup {
	g := kmsg.NewStreamsGroupDescribeResponseGroup()
	g.Group, g.ErrorCode, g.ErrorMessage = id, err.Code, &why
	return g
}

// seesTopology says whether the client may describe all topics of a topology.
func (c *call) seesTopology(t *kmsg.StreamsGroupDescribeResponseGroupTopology) bool {
	if c.rules() == nil || t == nil {
		return true
	}
	sees := func(topic string) bool { return c.may(auth.Describe, auth.Topic, topic) }
	for i := range t.Subtopologies {
		s := &t.Subtopologies[i]
		for _, names := range [][]string{s.SourceTopics, s.RepartitionSinkTopics} {
			for _, topic := range names {
				if !sees(topic) {
					return false
				}
			}
		}
		for _, list := range [][]kmsg.TopicInfo{s.StateChangelogTopics, s.RepartitionSourceTopics} {
			for j := range list {
				if !sees(list[j].Topic) {
					return false
				}
			}
		}
	}
	return true
}
