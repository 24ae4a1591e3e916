package partition

import (
	"errors"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/record"
	"muster/internal/redistest"
	"muster/internal/store"
)

// restartRig is a partition in a Redis that can be started again.
type restartRig struct {
	*txnRig
	server *redistest.Server
}

func newRestartRig(t *testing.T) *restartRig {
	server := redistest.Single(t)
	r := &restartRig{newTxnRig(t, redisStore(t, server, "restart", 10*time.Second), nil), server}
	r.raising()
	return r
}

// restarted waits until the partition is open in another run.
func (r *restartRig) restarted(before store.Run) store.Run {
	r.t.Helper()
	redistest.Eventually(r.t, "the partition to be open again", func() bool {
		p := r.part()
		return p != nil && p.Reopen(r.t.Context()) == nil && p.Run().ID != before.ID
	})
	r.ahead.Add(int64(2 * soon))
	return r.part().Run()
}

// What a coordinator decided, answered or concluded in one run of the server is of no use
// in the next.
func TestNothingOfAnEarlierRunIsAppended(t *testing.T) {
	r := newRestartRig(t)
	r.wantProduce(r.txnBatch(producerAt{id: 7}, 1, "a"), oldTxn, 0)
	first := r.part().Run()
	old := r.part()
	r.server.Nodes[0].Kill()
	r.server.Nodes[0].Start(t)
	redistest.Eventually(t, "the restart to be noticed", func() bool {
		_, _ = r.deps.store.List(t.Context())
		return old.HasRestarted(first)
	})
	own := func(run string) error {
		b, err := record.Build(record.PlainTemplate(), []record.Record{{Key: []byte("k"), Value: []byte("own")}})
		must(t, err)
		done := make(chan error, 1)
		r.part().AppendOwnIn(t.Context(), run, b, func(_ int64, err error) { done <- err })
		return await(t, done)
	}
	if err := own(first.ID); !errors.Is(err, kerr.NotLeaderForPartition) {
		t.Errorf("what was concluded in the run before is appended: %v", err)
	}
	now := r.restarted(first)
	if old != r.part() || now.Began != 1 || now.Lost != 0 || !old.HasRestarted(first) || old.HasRestarted(now) {
		t.Errorf("the run is %+v, led under %d", now, r.part().LeaderEpoch())
	}
	commit := Marker{ProducerID: 7, Commit: true, Start: NoStart, Run: first.ID}
	r.wantMarker(commit, kerr.TransactionCoordinatorFenced, 0)
	commit.Run = now.ID
	r.wantMarker(commit, nil, 1)
	r.coord.mu.Lock()
	r.coord.answer = TxnAnswer{Start: NoStart, Run: first.ID}
	r.coord.mu.Unlock()
	next := r.txnBatch(producerAt{id: 7, seq: 1}, 1, "b")
	r.wantNot(next, oldTxn, kerr.NotLeaderForPartition)
	r.coord.mu.Lock()
	r.coord.answer.Run = now.ID
	r.coord.mu.Unlock()
	r.wantProduce(next, oldTxn, 2)
	if err := own(now.ID); err != nil {
		t.Error(err)
	}
}

// A transaction that was open when the server was started may have ended in what is lost,
// and its producer may be in the next one. So the coordinator is asked.
func TestATransactionOfBeforeARestartIsNotWrittenTo(t *testing.T) {
	r := newRestartRig(t)
	r.wantProduce(r.txnBatch(producerAt{id: 7}, 1, "a"), oldTxn, 0)
	older := r.server.Nodes[0].Snapshot(t)
	r.wantMarker(Marker{ProducerID: 7, Commit: true, Start: NoStart}, nil, 1)
	first, asked := r.part().Run(), r.coord.questions()
	r.server.Nodes[0].Restore(t, older)
	now := r.restarted(first)
	r.coord.says(kerr.ProducerFenced)
	next := r.txnBatch(producerAt{id: 7, seq: 1}, 1, "b")
	r.wantNot(next, oldTxn, kerr.InvalidProducerEpoch)
	r.coord.says(nil)
	r.wantNot(next, oldTxn, kerr.NotLeaderForPartition)
	if n := r.coord.questions() - asked; n != 2 {
		t.Errorf("the coordinator was asked %d times", n)
	}
	r.wantMarker(Marker{ProducerID: 7, Commit: true, Start: NoStart, Run: now.ID}, nil, 1)
	r.wantProduce(next, oldTxn, 2)
	r.wantProduce(r.txnBatch(producerAt{id: 7, seq: 2}, 1, "c"), oldTxn, 3)
}

// Where a log has lost its end, a producer that is not known may have been known before: a
// batch in the middle of its sequence would come before those that it sends again.
func TestAProducerThatIsLostBeginsAtZero(t *testing.T) {
	r := newRestartRig(t)
	r.wantAppend(r.batch(plain, 1, "kept"), 0)
	r.wantAppend(r.batch(producerAt{id: 8, seq: 5}, 1, "somebody whose state expired"), 1)
	older := r.server.Nodes[0].Snapshot(t)
	r.wantAppend(r.batch(producerAt{id: 9}, 1, "lost"), 2)
	first := r.part().Run()
	r.server.Nodes[0].Restore(t, older)
	if now := r.restarted(first); now.Lost != 2 {
		t.Errorf("the run is %+v", now)
	}
	if a := r.append(r.batch(producerAt{id: 9, seq: 1}, 1, "next"), AcksAll); !errors.Is(a.Err, kerr.OutOfOrderSequenceNumber) {
		t.Errorf("got %+v", a)
	}
	r.wantAppend(r.batch(producerAt{id: 9}, 1, "lost, again"), 2)
	r.wantAppend(r.batch(producerAt{id: 8, seq: 6}, 1, "next"), 3)
}
