// DescribeTransactions (key 65) tells the state of transactional ids.
//
//	v0 flexible

package handler

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func (h *Handler) describeTransactions(ctx context.Context, c *call) (kmsg.Response, error) {
	req := c.req.(*kmsg.DescribeTransactionsRequest)
	resp := req.ResponseKind().(*kmsg.DescribeTransactionsResponse)
	req.TransactionalIDs = once(req.TransactionalIDs, func(id *string) string { return *id })
	part := func(some []string) kmsg.Request {
		out := kmsg.NewPtrDescribeTransactionsRequest()
		out.Version, out.TransactionalIDs = req.Version, some
		return out
	}
	h.opts.Transactions.Each(ctx, c.client(), req.TransactionalIDs, part, func(r kmsg.Response) {
		resp.TransactionStates = append(resp.TransactionStates, r.(*kmsg.DescribeTransactionsResponse).TransactionStates...)
	})
	return resp, nil
}
