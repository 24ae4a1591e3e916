// DescribeTransactions (key 65) tells the state of transactional ids.
//
//	v0 flexible

package handler

import (
	"context"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/auth"
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
	allowed, denied := c.split(auth.Describe, auth.TransactionalID, req.TransactionalIDs)
	c.asking(h.opts.Transactions).Each(ctx, c.client(), allowed, part, func(r kmsg.Response) {
		resp.TransactionStates = append(resp.TransactionStates, r.(*kmsg.DescribeTransactionsResponse).TransactionStates...)
	})
	for i := range resp.TransactionStates {
		t := &resp.TransactionStates[i]
		t.Topics = slices.DeleteFunc(t.Topics, func(topic kmsg.DescribeTransactionsResponseTransactionStateTopic) bool {
			return !c.sees(auth.Describe, auth.Topic, topic.Topic)
		})
	}
	for _, id := range denied {
		t := kmsg.NewDescribeTransactionsResponseTransactionState()
		t.TransactionalID, t.ErrorCode = id, kerr.TransactionalIDAuthorizationFailed.Code
		resp.TransactionStates = append(resp.TransactionStates, t)
	}
	return resp, nil
}
