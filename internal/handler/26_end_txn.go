// EndTxn (key 26) commits or aborts a transaction. It is answered when the
// decision is durable; the markers follow.
//
//	v0-1 the original fields; v2 PRODUCER_FENCED; v3 flexible;
//	v4   TRANSACTION_ABORTABLE; v5 the answer has the next epoch (KIP-890)

package handler

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/auth"
)

func (h *Handler) endTxn(ctx context.Context, c *call) (kmsg.Response, error) {
	req := c.req.(*kmsg.EndTxnRequest)
	if !c.may(auth.Write, auth.TransactionalID, req.TransactionalID) {
		return h.opts.Transactions.Fail(req, kerr.TransactionalIDAuthorizationFailed), nil
	}
	return c.asking(h.opts.Transactions).Do(ctx, req.TransactionalID, c.client(), req), nil
}
