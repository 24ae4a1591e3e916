// InitProducerId (key 22) gives an idempotent producer its id.
//
//	v0-1 the original fields; v2 flexible; v3 a producer may name the id it had;
//	v4-5 error codes of transactions
//
// Left out: transactional ids.

package handler

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func (h *Handler) initProducerID(ctx context.Context, c *call) (kmsg.Response, error) {
	req := c.req.(*kmsg.InitProducerIDRequest)
	resp := req.ResponseKind().(*kmsg.InitProducerIDResponse)
	resp.ProducerID, resp.ProducerEpoch = -1, -1
	if req.TransactionalID != nil {
		resp.ErrorCode = kerr.UnsupportedVersion.Code
		if *req.TransactionalID == "" {
			resp.ErrorCode = kerr.InvalidRequest.Code
		}
		return resp, nil
	}
	// Without a transactional id, a producer that wants a new epoch gets a new
	// id, which fences nobody.
	id, err := h.opts.Controller.NextProducerID(ctx)
	if err != nil {
		resp.ErrorCode, _ = h.code(err)
		return resp, nil
	}
	resp.ProducerID, resp.ProducerEpoch = id, 0
	return resp, nil
}
