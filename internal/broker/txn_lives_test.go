package broker_test

import (
	"context"
	"errors"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
	"muster/internal/broker"
)

// alone starts a broker with a topic t, for transactions.
func alone(t *testing.T) *broker.Broker {
	t.Helper()
	b := start(t, map[string]string{"num.partitions": "3", "offsets.topic.num.partitions": "1", "transaction.state.log.num.partitions": "1"})
	produce(t, client(t, b), "t", 0, 1)
	return b
}

// TestFenceProducers does what Admin.fenceProducers does: InitProducerId without a producer,
// until it is answered. The transaction is aborted, and its producer can do nothing more.
func TestFenceProducers(t *testing.T) {
	for name, opts := range versions {
		t.Run(name, func(t *testing.T) {
			b := alone(t)
			c := begin(t, b, "x0", opts...)
			pid, was, err := c.ProducerID(t.Context())
			must(t, err)
			got := initAgain(t, client(t, b), "x0", -1, -1)
			assert.True(t, got.ProducerID == pid && got.ProducerEpoch > was, "fencing %d/%d gives %d/%d", pid, was, got.ProducerID, got.ProducerEpoch)
			late := c.ProduceSync(t.Context(), &kgo.Record{Topic: "t", Value: []byte("late")}).FirstErr()
			assert.True(t, late != nil, "its producer writes on")
			err = c.EndTransaction(t.Context(), kgo.TryCommit)
			assert.Error(t, err, "its producer commits")
			assert.True(t, fenced(errors.Join(late, err)), "its producer is told %v, %v", late, err)
			wantCommitted(t, b, map[string]int{})
			wantStable(t, b, map[string]int64{"x0": -1})
		})
	}
}

func fenced(err error) bool {
	return errors.Is(err, kerr.ProducerFenced) || errors.Is(err, kerr.InvalidProducerEpoch)
}

// initAgain asks for a producer id, or for the next epoch of one, until there is an answer.
func initAgain(t *testing.T, c *kgo.Client, id string, pid int64, epoch int16) (out *kmsg.InitProducerIDResponse) {
	t.Helper()
	eventually(t, "InitProducerId", func(ctx context.Context) error {
		req := kmsg.NewPtrInitProducerIDRequest()
		req.TransactionalID, req.TransactionTimeoutMillis, req.ProducerID, req.ProducerEpoch = kmsg.StringPtr(id), 60_000, pid, epoch
		resp, err := req.RequestWith(ctx, c)
		if err != nil {
			return err
		}
		out = resp
		return kerr.ErrorForCode(resp.ErrorCode)
	})
	return out
}

// TestUpgradeTV1ToTV2MidLife has clients of both versions take an id from each other,
// with transactions open and ended. Who was last is right, and what the others
// committed stays.
func TestUpgradeTV1ToTV2MidLife(t *testing.T) {
	b := alone(t)
	old := begin(t, b, "x0", versions["TV1"]...)
	commitAll(t, []*kgo.Client{old})
	write(t, old, "x0") // It is open when the new one comes.
	upgraded := begin(t, b, "x0")
	if err := old.EndTransaction(t.Context(), kgo.TryCommit); !fenced(err) {
		t.Errorf("a commit of the older one: %v", err)
	}
	commitAll(t, []*kgo.Client{upgraded})
	write(t, upgraded, "x0")
	commitAll(t, []*kgo.Client{upgraded})
	wantCommitted(t, b, map[string]int{"x0": 9})
	write(t, upgraded, "x0")
	back := begin(t, b, "x0", versions["TV1"]...)
	if err := upgraded.EndTransaction(t.Context(), kgo.TryCommit); !fenced(err) {
		t.Errorf("a commit of the newer one: %v", err)
	}
	commitAll(t, []*kgo.Client{back})
	wantCommitted(t, b, map[string]int{"x0": 12})
	wantStable(t, b, map[string]int64{"x0": 1})
}

// TestATransactionIsEndedByTheVersionThatItsEndHas has a producer that began by version 1
// go on by version 2: the end gives it an epoch, by which late requests of the ended
// transaction are refused, and with which it goes on; and the other way round.
func TestATransactionIsEndedByTheVersionThatItsEndHas(t *testing.T) {
	b := alone(t)
	old, c := begin(t, b, "x0", versions["TV1"]...), client(t, b)
	pid, epoch, err := old.ProducerID(t.Context())
	must(t, err)
	next := end(t, c, pid, epoch, true)
	assert.MustTrue(t, next.ErrorCode == 0 && next.ProducerID == pid && next.ProducerEpoch == epoch+1, "the end of %d/%d gives %+v", pid, epoch, next)
	wantState(t, b, "x0", "CompleteCommit")
	if again := end(t, c, pid, epoch, true); again.ErrorCode != 0 || again.ProducerEpoch != epoch+1 {
		t.Errorf("a repeat gives %+v", again)
	}
	assert.True(t, old.ProduceSync(t.Context(), &kgo.Record{Topic: "t", Value: []byte("late")}).FirstErr() != nil, "a late record is in")
	// The next transaction is one of offsets only, and ends by version 1.
	must(t, commitAs(t.Context(), c, "x0", pid, epoch+1, 2))
	if e := end(t, c, pid, epoch, false); e.ErrorCode != kerr.ProducerFenced.Code {
		t.Errorf("a delayed end of the one before gives %+v", e)
	}
	if e := end(t, client(t, b, versions["TV1"]...), pid, epoch+1, false); e.ErrorCode != 0 {
		t.Fatalf("an end by version 1 gives %+v", e)
	}
	wantState(t, b, "x0", "CompleteAbort")
	if got := initAgain(t, c, "x0", pid, epoch+1); got.ProducerID != pid || got.ProducerEpoch != epoch+2 {
		t.Errorf("the next epoch of %d/%d is %+v", pid, epoch+1, got)
	}
	wantCommitted(t, b, map[string]int{"x0": 3})
	wantStable(t, b, map[string]int64{"x0": 1})
}

// end ends the transaction of x0, whatever comes of it.
func end(t *testing.T, c *kgo.Client, pid int64, epoch int16, commit bool) (out *kmsg.EndTxnResponse) {
	t.Helper()
	req := kmsg.NewPtrEndTxnRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Commit = "x0", pid, epoch, commit
	eventually(t, "EndTxn", func(ctx context.Context) error {
		resp, err := req.RequestWith(ctx, c)
		if err == nil && resp.ErrorCode == kerr.ConcurrentTransactions.Code {
			err = kerr.ConcurrentTransactions
		}
		out = resp
		return err
	})
	return out
}
