// AllocateProducerIds (key 67) gives a shard of transactions producer ids to give
// away.
//
//	v0 flexible
//
// It is this broker's own, and not among what clients are told.

package handler

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func (h *Handler) allocateProducerIDs(ctx context.Context, c *call) (kmsg.Response, error) {
	resp := c.req.ResponseKind().(*kmsg.AllocateProducerIDsResponse)
	first, count, err := h.opts.Controller.NextProducerIDs(ctx)
	if err != nil {
		resp.ErrorCode, _ = h.code(err)
		return resp, nil
	}
	resp.ProducerIDStart, resp.ProducerIDLen = first, count
	return resp, nil
}
