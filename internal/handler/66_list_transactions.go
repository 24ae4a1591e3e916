// ListTransactions (key 66) lists the transactional ids of this broker.
//
//	v0 flexible; v1 filter by duration; v2 by a pattern over the whole id (RE2)
//
// The coordinator filters by duration, the rest is held against what it lists
// here, outside of its locks.

package handler

import (
	"cmp"
	"context"
	"regexp"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// transactionStates are what transactions can be filtered by. A filter by another
// name is told to the client, and matches nothing.
var transactionStates = []string{"Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Dead", "PrepareEpochFence"}

// maxPattern is how long a pattern may be.
const maxPattern = 1000

// transactionFilter is what a client wants to see.
type transactionFilter struct {
	states  map[string]bool // nil for all
	ids     map[int64]bool  // nil for all
	pattern *regexp.Regexp  // nil for all
}

func (h *Handler) listTransactions(ctx context.Context, c *call) (kmsg.Response, error) {
	req := c.req.(*kmsg.ListTransactionsRequest)
	resp := req.ResponseKind().(*kmsg.ListTransactionsResponse)
	filter, unknown, err := newTransactionFilter(req)
	resp.UnknownStateFilters, resp.ErrorCode = unknown, errCode(err)
	if err != nil {
		return resp, nil
	}
	part := func() kmsg.Request {
		out := kmsg.NewPtrListTransactionsRequest()
		out.Version, out.DurationFilterMillis = req.Version, req.DurationFilterMillis
		return out
	}
	h.opts.Transactions.All(ctx, c.client(), part, func(r kmsg.Response) {
		some := r.(*kmsg.ListTransactionsResponse)
		for _, t := range some.TransactionStates {
			if filter.matches(&t) {
				resp.TransactionStates = append(resp.TransactionStates, t)
			}
		}
		resp.ErrorCode = cmp.Or(resp.ErrorCode, some.ErrorCode)
	})
	if resp.ErrorCode != 0 {
		resp.TransactionStates = nil
		// A shard that moved away meanwhile is not this broker's.
		if resp.ErrorCode == kerr.NotCoordinator.Code {
			resp.ErrorCode = kerr.CoordinatorLoadInProgress.Code
		}
	}
	slices.SortFunc(resp.TransactionStates, func(a, b kmsg.ListTransactionsResponseTransactionState) int {
		return cmp.Compare(a.TransactionalID, b.TransactionalID)
	})
	return resp, nil
}

func newTransactionFilter(req *kmsg.ListTransactionsRequest) (f transactionFilter, unknown []string, refused *kerr.Error) {
	for _, s := range once(req.StateFilters, func(s *string) string { return *s }) {
		if f.states == nil {
			f.states = map[string]bool{}
		}
		if f.states[s] = slices.Contains(transactionStates, s); !f.states[s] {
			unknown = append(unknown, s)
		}
	}
	for _, id := range req.ProducerIDFilters {
		if f.ids == nil {
			f.ids = map[int64]bool{}
		}
		f.ids[id] = true
	}
	if p := req.TransactionalIDPattern; p != nil && *p != "" {
		if len(*p) > maxPattern {
			return f, unknown, kerr.InvalidRegularExpression
		}
		if _, err := regexp.Compile(*p); err != nil { // By itself, or a parenthesis too many would pass.
			return f, unknown, kerr.InvalidRegularExpression
		}
		var err error
		if f.pattern, err = regexp.Compile(`\A(?:` + *p + `)\z`); err != nil {
			return f, unknown, kerr.InvalidRegularExpression
		}
	}
	return f, unknown, nil
}

func (f *transactionFilter) matches(t *kmsg.ListTransactionsResponseTransactionState) bool {
	return (f.states == nil || f.states[t.TransactionState]) &&
		(f.ids == nil || f.ids[t.ProducerID]) &&
		(f.pattern == nil || f.pattern.MatchString(t.TransactionalID))
}
