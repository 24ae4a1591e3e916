// EndTxn (key 26) commits or aborts a transaction. It is answered when the
// decision is durable; the markers follow.
//
//	v0-1 the original fields; v2 PRODUCER_FENCED; v3 flexible;
//	v4   TRANSACTION_ABORTABLE; v5 the answer has the next epoch (KIP-890)

package handler

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func (h *Handler) endTxn(ctx context.Context, c *call) (kmsg.Response, error) {
	return h.opts.Transactions.Do(ctx, c.req.(*kmsg.EndTxnRequest).TransactionalID, c.client(), c.req), nil
}
