// InitProducerId (key 22) gives a producer its id. Of a transactional one it also
// ends what an earlier instance left open, and fences it.
//
//	v0-1 the original fields; v2 flexible; v3 a producer may name the id it had
//	     (KIP-360); v4 PRODUCER_FENCED; v5 TRANSACTION_ABORTABLE
//
// Left out: v6, two-phase commit (KIP-939).

package handler

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/auth"
)

func (h *Handler) initProducerID(ctx context.Context, c *call) (kmsg.Response, error) {
	req := c.req.(*kmsg.InitProducerIDRequest)
	resp := req.ResponseKind().(*kmsg.InitProducerIDResponse)
	resp.ProducerID, resp.ProducerEpoch = -1, -1
	if req.TransactionalID != nil {
		if !c.may(auth.Write, auth.TransactionalID, *req.TransactionalID) {
			resp.ErrorCode = kerr.TransactionalIDAuthorizationFailed.Code
			return resp, nil
		}
		if *req.TransactionalID == "" {
			resp.ErrorCode = kerr.InvalidRequest.Code
			return resp, nil
		}
		h.lately.note(c.client(), h.opts.Now())
		return h.awaitFrom(ctx, c, h.opts.Transactions, *req.TransactionalID), nil
	}
	if !c.mayProduce() {
		resp.ErrorCode = kerr.ClusterAuthorizationFailed.Code
		return resp, nil
	}
	// Without a transactional id, a producer that wants a new epoch gets a new
	// id, which fences no one.
	id, err := h.opts.Controller.NextProducerID(ctx)
	if err != nil {
		resp.ErrorCode, _ = h.code(err)
		return resp, nil
	}
	resp.ProducerID, resp.ProducerEpoch = id, 0
	return resp, nil
}
