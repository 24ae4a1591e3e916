// ShareGroupHeartbeat (key 76) is how a member of a share group (KIP-932) joins, says which
// topics it wants, learns which partitions it reads, and leaves.
//
//	v1 the original fields; v0 was for early access in Kafka 4.0, and is not served

package handler

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/auth"
)

func (h *Handler) shareGroupHeartbeat(ctx context.Context, c *call) (kmsg.Response, error) {
	req := c.req.(*kmsg.ShareGroupHeartbeatRequest)
	if !c.may(auth.Read, auth.Group, req.GroupID) {
		return h.opts.Groups.Fail(req, kerr.GroupAuthorizationFailed), nil
	}
	for _, topic := range req.SubscribedTopicNames {
		if !c.may(auth.Describe, auth.Topic, topic) {
			return h.opts.Groups.Fail(req, kerr.TopicAuthorizationFailed), nil
		}
	}
	return c.asking(h.opts.Groups).Do(ctx, req.GroupID, c.client(), req), nil
}
