// ReadShareGroupState (key 84) tells a leader the state of its share partitions, and fences the
// leaders before it. Leaders of partitions send it. It is for brokers only, and not among what
// clients are told.
//
//	v0 flexible

package handler

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func (h *Handler) readShareGroupState(ctx context.Context, c *call) (kmsg.Response, error) {
	return h.shareGroupState(ctx, c)
}
