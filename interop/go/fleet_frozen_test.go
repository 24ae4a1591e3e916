package interop

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
	"muster/internal/redistest"
)

// frozenEnd is the last word of a producer whose coordinator is frozen.
type frozenEnd struct {
	id   string
	opts []kgo.Opt
	wire *wire
	req  *kmsg.EndTxnRequest
}

// TestFrozenCoordinatorIsFenced freezes a coordinator for longer than its lease lasts, with
// the ends of two transactions waiting on its connections. Meanwhile another
// coordinator aborts them, since new instances of their producers come. When the frozen one
// goes on it still knows them as open, and must not end them: it answers with an error, and what
// its successor did stands.
func TestFrozenCoordinatorIsFenced(t *testing.T) {
	onlyOn(t, "redis")
	f := startFleet(t, redistest.Single(t).URL(), 2, "--set", "transaction.state.log.num.partitions=1")
	createTopic(t, f.addrs[0], "out", 2)
	var waiting []*frozenEnd
	for version, opts := range transactionVersions {
		waiting = append(waiting, f.openTransaction(version, opts))
	}
	victim := f.leader("__transaction_state", 0)
	for _, w := range waiting {
		w.wire = dial(t, f.addrs[victim])
	}
	var newer []*kgo.Client
	f.freeze(victim, func() {
		for _, w := range waiting {
			w.wire.send(w.req)
		}
		f.othersLead(victim)
		for _, w := range waiting {
			cl := transactional(t, f.without(victim)[0], w.id, w.opts...)
			inTransaction(t, cl, kgo.TryCommit, "new1 "+w.id, "new2 "+w.id)
			newer = append(newer, cl)
		}
	})
	for _, w := range waiting {
		assert.True(t, next[*kmsg.EndTxnResponse](w.wire).ErrorCode != 0, "%s: the coordinator that was frozen ends the transaction", w.id)
	}
	f.hasAll()
	var want []string
	for i, w := range waiting {
		inTransaction(t, newer[i], kgo.TryCommit, "new3 "+w.id)
		want = append(want, "new1 "+w.id, "new2 "+w.id, "new3 "+w.id)
	}
	wantTopic(t, strings.Join(f.addrs, ","), "out", kgo.ReadCommitted(), want...)
}

// openTransaction begins a transaction, and returns how it is to be committed.
func (f *fleet) openTransaction(id string, opts []kgo.Opt) *frozenEnd {
	f.t.Helper()
	cl := transactional(f.t, strings.Join(f.addrs, ","), id, append(opts, kgo.SeedBrokers(f.addrs...))...)
	must(f.t, cl.BeginTransaction())
	must(f.t, cl.ProduceSync(f.t.Context(), recordsOf([]string{"lost1 " + id, "lost2 " + id})...).FirstErr())
	pid, epoch, err := cl.ProducerID(f.t.Context())
	must(f.t, err)
	req := kmsg.NewPtrEndTxnRequest()
	req.Version, req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Commit = 4, id, pid, epoch, true
	if opts == nil {
		req.Version = 5
	}
	return &frozenEnd{id: id, opts: opts, req: req}
}
