// ConsumerGroupHeartbeat (key 68) is how a member of a consumer group (KIP-848) joins,
// says what it wants, learns what it has, and leaves.
//
//	v0 the original fields; v1 regular expressions, and the client makes its member id

package handler

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func (h *Handler) consumerGroupHeartbeat(ctx context.Context, c *call) (kmsg.Response, error) {
	req := c.req.(*kmsg.ConsumerGroupHeartbeatRequest)
	return h.opts.Groups.Do(ctx, req.Group, c.client(), req), nil
}
