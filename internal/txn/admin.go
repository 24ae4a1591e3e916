package txn

import (
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/journal"
	"muster/internal/machine"
)

// describe handles DescribeTransactions.
func (x *step) describe(id machine.RequestID, m *kmsg.DescribeTransactionsRequest) {
	resp := kmsg.NewPtrDescribeTransactionsResponse()
	resp.Version = m.Version
	for _, name := range m.TransactionalIDs {
		resp.TransactionStates = append(resp.TransactionStates, x.describeOne(name))
	}
	x.reply(id, resp)
}

func (x *step) describeOne(id string) kmsg.DescribeTransactionsResponseTransactionState {
	out := kmsg.NewDescribeTransactionsResponseTransactionState()
	out.TransactionalID = id
	t := x.txns[id]
	switch {
	case id == "":
		out.ErrorCode = kerr.InvalidRequest.Code
		return out
	case t == nil:
		out.ErrorCode = kerr.TransactionalIDNotFound.Code
		return out
	}
	v := t.hard
	out.State, out.TimeoutMillis, out.StartTimestamp = v.State.String(), v.Timeout, v.Start
	out.ProducerID, out.ProducerEpoch = v.Producer.id, v.Producer.epoch
	clientID, host := x.Holder(id)
	journal.Holder{ClientID: clientID, Host: strings.TrimPrefix(host, "/")}.Set(&out.UnknownTags)
	topics := v.Topics
	if t.ending != nil {
		topics = t.ending.remaining()
	}
	for _, p := range topics {
		e := kmsg.NewDescribeTransactionsResponseTransactionStateTopic()
		e.Topic, e.Partitions = p.name, slices.Clone(p.partitions)
		out.Topics = append(out.Topics, e)
	}
	return out
}

// list handles ListTransactions as far as it takes the shard's state: what matches
// by state and duration. The handler looks at producer ids and the pattern, outside
// of the shard's lock, since both may be long.
func (x *step) list(id machine.RequestID, m *kmsg.ListTransactionsRequest) {
	resp := kmsg.NewPtrListTransactionsResponse()
	resp.Version = m.Version
	var wanted [endOfStates]bool
	resp.UnknownStateFilters = filterStates(m.StateFilters, &wanted)
	for _, id := range x.sortedIDs() {
		v := x.txns[id].hard
		if !wanted[v.State] || m.DurationFilterMillis >= 0 && x.now.UnixMilli()-v.Start <= m.DurationFilterMillis {
			continue
		}
		e := kmsg.NewListTransactionsResponseTransactionState()
		e.TransactionalID, e.ProducerID, e.TransactionState = id, v.Producer.id, v.State.String()
		resp.TransactionStates = append(resp.TransactionStates, e)
	}
	x.reply(id, resp)
}

// filterStates notes which states are wanted, all if no filter is given, and
// returns the names that are none.
func filterStates(filters []string, wanted *[endOfStates]bool) (unknown []string) {
	all := kmsg.TransactionStateStrings()
	for s := range wanted {
		wanted[s] = len(filters) == 0
	}
	seen := map[string]bool{}
	for _, name := range filters {
		switch s := slices.Index(all, name); {
		case s < 0 && !seen[name]:
			unknown = append(unknown, name)
			seen[name] = true
		case s >= 0 && s < len(wanted):
			wanted[s] = true
		}
	}
	return unknown
}
