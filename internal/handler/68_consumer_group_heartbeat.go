// ConsumerGroupHeartbeat (key 68) is how a member of a consumer group (KIP-848) joins,
// says what it wants, learns what it has, and leaves.
//
//	v0 the original fields; v1 regular expressions, and the client makes its member id

package handler

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/auth"
)

func (h *Handler) consumerGroupHeartbeat(ctx context.Context, c *call) (kmsg.Response, error) {
	req := c.req.(*kmsg.ConsumerGroupHeartbeatRequest)
	if !c.may(auth.Read, auth.Group, req.Group) {
		return h.opts.Groups.Fail(req, kerr.GroupAuthorizationFailed), nil
	}
	for _, topic := range req.SubscribedTopicNames {
		if !c.may(auth.Describe, auth.Topic, topic) {
			return h.opts.Groups.Fail(req, kerr.TopicAuthorizationFailed), nil
		}
	}
	return c.asking(h.opts.Groups).Do(ctx, req.Group, c.asks(), req), nil
}
