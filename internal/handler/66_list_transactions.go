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
	"regexp/syntax"
	"slices"
	"sort"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/auth"
	"muster/internal/metadata"
)

// transactionStates are what transactions can be filtered by. A filter by another
// name is told to the client, and matches nothing.
var transactionStates = []string{"Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Dead", "PrepareEpochFence"}

// maxPattern is how long a pattern may be, and maxSteps how long with its repetitions
// written out: for each letter of each id as many steps may be taken.
const (
	maxPattern = 1000
	maxSteps   = 2 * maxPattern
)

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
	// What this broker is to coordinate and has not begun to load is loading, too: who
	// finds a transaction nowhere may abort it.
	led, answered := h.ledTransactions(c.image), 0
	c.asking(h.opts.Transactions).All(ctx, c.client(), part, func(r kmsg.Response) {
		some := r.(*kmsg.ListTransactionsResponse)
		for _, t := range some.TransactionStates {
			if filter.matches(&t) && c.sees(auth.Describe, auth.TransactionalID, t.TransactionalID) {
				resp.TransactionStates = append(resp.TransactionStates, t)
			}
		}
		resp.ErrorCode = cmp.Or(resp.ErrorCode, some.ErrorCode)
		answered++
	})
	if answered < led {
		resp.ErrorCode = cmp.Or(resp.ErrorCode, kerr.CoordinatorLoadInProgress.Code)
	}
	if resp.ErrorCode != 0 {
		resp.TransactionStates = nil
		// A shard that moved away meanwhile is not this broker's.
		if resp.ErrorCode == kerr.NotCoordinator.Code {
			resp.ErrorCode = kerr.CoordinatorLoadInProgress.Code
		}
	}
	sort.Slice(resp.TransactionStates, func(i, j int) bool {
		return resp.TransactionStates[i].TransactionalID < resp.TransactionStates[j].TransactionalID
	})
	return resp, nil
}

// ledTransactions returns how many partitions of transactions this broker leads.
func (h *Handler) ledTransactions(image *metadata.Image) (n int) {
	if t := image.Topic(metadata.TransactionsTopic); t != nil {
		for _, p := range t.Partitions {
			if p.Leader == h.opts.NodeID {
				n++
			}
		}
	}
	return n
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
		// By itself, or a parenthesis too many would pass.
		parsed, err := syntax.Parse(*p, syntax.Perl)
		if err != nil || steps(parsed) > maxSteps {
			return f, unknown, kerr.InvalidRegularExpression
		}
		if f.pattern, err = regexp.Compile(`\A(?:` + *p + `)\z`); err != nil {
			return f, unknown, kerr.InvalidRegularExpression
		}
	}
	return f, unknown, nil
}

// steps is about how many steps a pattern has.
func steps(re *syntax.Regexp) int {
	n := 1
	if re.Op == syntax.OpLiteral {
		n = len(re.Rune)
	}
	for _, sub := range re.Sub {
		n += steps(sub)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(re.Min, re.Max, 1)
	}
	return min(n, maxSteps+1)
}

func (f *transactionFilter) matches(t *kmsg.ListTransactionsResponseTransactionState) bool {
	return (f.states == nil || f.states[t.TransactionState]) &&
		(f.ids == nil || f.ids[t.ProducerID]) &&
		(f.pattern == nil || f.pattern.MatchString(t.TransactionalID))
}
