package partition

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/assert"
	"muster/internal/redistest"
	"muster/internal/store"
	"muster/internal/store/mem"
)

func TestTheCoordinatorIsAskedOncePerTransaction(t *testing.T) {
	onEngines(t, func(t *testing.T, s store.Store) {
		r := newTxnRig(t, s, nil)
		for i := range 3 {
			r.wantProduce(r.txnBatch(producerAt{7, 4, int32(i)}, 1), oldTxn, int64(i))
		}
		want := TxnQuestion{TransactionalID: "x", ProducerID: 7, ProducerEpoch: 4, Topic: testTopic, TopicID: testTopicID}
		if len(r.coord.asked) != 1 || r.coord.asked[0] != want {
			t.Fatalf("asked: %+v", r.coord.asked)
		}
		r.wantMarker(marker(7, 4, true), nil, 1)
		r.wantProduce(r.txnBatch(producerAt{7, 5, 0}, 1), newTxn, 4)
		want.ProducerEpoch, want.Add = 5, true
		if len(r.coord.asked) != 2 || r.coord.asked[1] != want {
			t.Fatalf("asked: %+v", r.coord.asked)
		}
	})
}

// TestBatchesWaitInOrderBehindOneQuestion overwrites the bytes that were sent, which
// belong to others by then.
func TestBatchesWaitInOrderBehindOneQuestion(t *testing.T) {
	onEngines(t, func(t *testing.T, s store.Store) {
		r := newTxnRig(t, s, nil)
		r.coord.holds()
		var outcomes []<-chan Appended
		for i := range 40 {
			b := r.txnBatch(producerAt{7, 0, int32(i)}, 1, fmt.Sprint(i))
			outcomes = append(outcomes, r.begin(b, oldTxn))
			clear(b)
		}
		other := r.begin(r.txnBatch(producerAt{8, 0, 0}, 1, "other"), oldTxn)
		if n := r.coord.questions(); n != 2 {
			t.Fatalf("asked %d times for two producers", n)
		}
		answer := await(t, r.coord.held)
		await(t, r.coord.held)(TxnAnswer{Start: NoStart})
		if a := await(t, other); a.Err != nil || a.BaseOffset != 0 {
			t.Fatalf("a producer waits for the answer to another: %+v", a)
		}
		answer(TxnAnswer{Start: NoStart})
		for i, c := range outcomes {
			if a := await(t, c); a.Err != nil || a.BaseOffset != int64(i)+1 {
				t.Fatalf("batch %d: %+v", i, a)
			}
		}
		redistest.Eventually(t, "the memory to be given back", func() bool { return r.deps.parked.Load() == 0 })
	})
}

func TestWhatWaitsForCoordinatorsIsBounded(t *testing.T) {
	r := newTxnRig(t, mem.New(), nil)
	r.coord.holds()
	big := string(make([]byte, 900<<10))
	var waiting []<-chan Appended
	for i := range int32(100) {
		c := r.begin(r.txnBatch(producerAt{7, 0, i}, 1, big[:len(big)/2]), oldTxn)
		if len(c) == 0 {
			waiting = append(waiting, c)
			continue
		}
		if a := <-c; !errors.Is(a.Err, kerr.NotEnoughReplicas) {
			t.Fatalf("%+v", a)
		}
		break
	}
	if held := r.deps.parked.Load(); held > maxParkedIn || held < maxParkedIn*9/10 {
		t.Errorf("%d bytes wait", held)
	}
	r.deps.parked.Add(maxParked) // Of other partitions.
	await(t, r.coord.held)(TxnAnswer{Err: kerr.NotCoordinator})
	for _, c := range waiting {
		if a := await(t, c); !errors.Is(a.Err, kerr.NotEnoughReplicas) {
			t.Fatalf("%+v", a)
		}
	}
	r.wantNot(r.txnBatch(producerAt{7, 0, 0}, 1), oldTxn, kerr.NotEnoughReplicas)
	r.deps.parked.Add(-maxParked)
	if held := r.deps.parked.Load(); held != 0 || r.part().questions.bytes != 0 || len(r.part().questions.asked) != 0 {
		t.Errorf("%d bytes are still counted, %d here", held, r.part().questions.bytes)
	}
	r.coord.says(nil)
	r.wantProduce(r.txnBatch(producerAt{7, 0, 0}, 1), oldTxn, 0)
}

// A batch that is larger than all that may wait waits alone, or it could never be appended.
func TestABatchOfAnySizeMayWaitAlone(t *testing.T) {
	shared := &deps{}
	p, other := &Partition{deps: shared}, &Partition{deps: shared}
	const huge = maxParked + 1
	assert.True(t, p.reserve(huge), "it may not wait, though it is alone")
	assert.False(t, p.reserve(1) || other.reserve(1), "another one may wait beside it")
	p.unreserve(huge)
	assert.True(t, other.reserve(1), "one may not wait after it")
	assert.False(t, p.reserve(huge), "it may wait beside another one")
	other.unreserve(1)
	assert.Equal(t, shared.parked.Load(), int64(0), "bytes that are still counted")
}

func TestOldEpochIs47BeforeVerification(t *testing.T) {
	onEngines(t, func(t *testing.T, s store.Store) {
		r := newTxnRig(t, s, nil)
		r.wantMarker(marker(7, 3, false), nil, 1)
		r.coord.says(kerr.TransactionAbortable)
		r.wantNot(r.txnBatch(producerAt{7, 2, 0}, 1), oldTxn, kerr.InvalidProducerEpoch)
		r.wantNot(r.txnBatch(producerAt{7, 2, 0}, 1), newTxn, kerr.InvalidProducerEpoch)
		if r.coord.questions() != 0 {
			t.Error("the coordinator was asked")
		}
	})
}

func TestNotAddedErrorPerVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTxnRig(t, mem.New(), nil)
		for _, x := range []struct {
			says          *kerr.Error
			v10, v11, v12 *kerr.Error
		}{
			{kerr.TransactionAbortable, kerr.InvalidTxnState, kerr.TransactionAbortable, kerr.TransactionAbortable},
			{kerr.ProducerFenced, kerr.InvalidProducerEpoch, kerr.InvalidProducerEpoch, kerr.InvalidProducerEpoch},
			{kerr.InvalidProducerEpoch, kerr.InvalidProducerEpoch, kerr.InvalidProducerEpoch, kerr.InvalidProducerEpoch},
			{kerr.ConcurrentTransactions, kerr.NotEnoughReplicas, kerr.NotEnoughReplicas, kerr.ConcurrentTransactions},
			{kerr.CoordinatorLoadInProgress, kerr.NotEnoughReplicas, kerr.NotEnoughReplicas, kerr.NotEnoughReplicas},
			{kerr.CoordinatorNotAvailable, kerr.NotEnoughReplicas, kerr.NotEnoughReplicas, kerr.NotEnoughReplicas},
			{kerr.NotCoordinator, kerr.NotEnoughReplicas, kerr.NotEnoughReplicas, kerr.NotEnoughReplicas},
			{kerr.NetworkException, kerr.NotEnoughReplicas, kerr.NotEnoughReplicas, kerr.NotEnoughReplicas},
			{kerr.RequestTimedOut, kerr.NotEnoughReplicas, kerr.NotEnoughReplicas, kerr.NotEnoughReplicas},
			{kerr.OperationNotAttempted, kerr.NotEnoughReplicas, kerr.NotEnoughReplicas, kerr.NotEnoughReplicas},
			{kerr.InvalidProducerIDMapping, kerr.InvalidProducerIDMapping, kerr.InvalidProducerIDMapping, kerr.InvalidProducerIDMapping},
		} {
			r.coord.says(x.says)
			for version, want := range map[int16]*kerr.Error{9: x.v10, 10: x.v10, 11: x.v11, 12: x.v12, 13: x.v12} {
				r.wantNot(r.txnBatch(producerAt{7, 0, 0}, 1), Produce{Acks: AcksAll, TransactionalID: "x", Version: version}, want)
			}
		}
		r.coord.says(nil)
		r.wantNot(r.txnBatch(producerAt{7, 0, 0}, 1), Produce{Acks: AcksAll, Version: 9}, kerr.TransactionalIDAuthorizationFailed)
		r.wantProduce(r.txnBatch(producerAt{7, 0, 0}, 1), oldTxn, 0)
	})
}

// TestABusyCoordinatorIsAskedAgain has one that is busy for a while, and one that is
// for too long. The marker that it is busy with comes meanwhile.
func TestABusyCoordinatorIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTxnRig(t, mem.New(), nil)
		r.coord.says(kerr.ConcurrentTransactions)
		began := time.Now()
		r.wantNot(r.txnBatch(producerAt{7, 0, 0}, 1), newTxn, kerr.ConcurrentTransactions)
		if took := time.Since(began); took != askFor || r.coord.questions() != 6 {
			t.Errorf("asked %d times in %v", r.coord.questions(), took)
		}
		r.coord.holds()
		waits := r.begin(r.txnBatch(producerAt{7, 0, 0}, 1), newTxn)
		r.wantMarker(marker(7, 0, false), nil, 1) // Of what went before.
		(<-r.coord.held)(TxnAnswer{Err: kerr.ConcurrentTransactions})
		(<-r.coord.held)(TxnAnswer{Start: NoStart})
		if a := await(t, waits); a.Err != nil || a.BaseOffset != 1 {
			t.Errorf("%+v", a)
		}
		r.wantMarker(marker(7, 0, false), nil, 1)
		waits = r.begin(r.txnBatch(producerAt{7, 0, 1}, 1), oldTxn)
		(<-r.coord.held)(TxnAnswer{Err: kerr.ConcurrentTransactions})
		if a := await(t, waits); !errors.Is(a.Err, kerr.NotEnoughReplicas) {
			t.Errorf("%+v", a)
		}
	})
}

// TestGuardABA asks about a transaction that ends before the answer arrives, when
// the answer no longer says anything: the next transaction may have begun.
func TestGuardABA(t *testing.T) {
	onEngines(t, func(t *testing.T, s store.Store) {
		r := newTxnRig(t, s, nil)
		r.coord.holds()
		offset := int64(0)
		try := func(how Produce, epoch int16, start int64, want *kerr.Error, meanwhile func()) {
			t.Helper()
			waits := r.begin(r.txnBatch(producerAt{7, epoch, 0}, 1), how)
			meanwhile()
			await(t, r.coord.held)(TxnAnswer{Start: start})
			if a := await(t, waits); a.Err != want && !errors.Is(a.Err, want) {
				t.Fatalf("%+v, want %v", a, want)
			} else if want == nil {
				r.wantMarker(marker(7, epoch, true), nil, 1)
			}
			offset = r.part().LogEndOffset()
		}
		write := func(m Marker) func() {
			return func() {
				t.Helper()
				if err := await(t, r.beginMarker(m)); err != nil {
					t.Fatal(err)
				}
			}
		}
		started := func(m Marker, at int64) Marker {
			m.Start = at
			return m
		}
		second := func(m Marker) Marker {
			m.Version = 2
			return m
		}
		try(oldTxn, 0, NoStart, kerr.InvalidTxnState, write(marker(7, 0, true)))
		try(oldTxn, 0, NoStart, kerr.InvalidTxnState, write(marker(7, 0, true))) // One that is not written again.
		try(oldTxn, 1, NoStart, nil, write(marker(8, 0, true)))                  // Of someone else.
		try(oldTxn, 2, 500, kerr.InvalidTxnState, write(started(marker(7, 2, true), 500)))
		try(oldTxn, 3, NoStart, kerr.InvalidTxnState, write(started(marker(7, 3, true), 500)))
		try(oldTxn, 4, 600, nil, write(started(marker(7, 4, true), 500)))                     // Of an earlier transaction.
		try(newTxn, 6, NoStart, nil, write(second(marker(7, 6, true))))                       // The end of epoch 5.
		try(newTxn, 7, NoStart, kerr.InvalidProducerEpoch, write(second(marker(7, 8, true)))) // Of its own.
		reopen := func() {
			must(t, r.part().Reopen(t.Context()))
		}
		try(newTxn, 9, NoStart, kerr.NotLeaderForPartition, reopen)
		r.coord.says(nil)
		r.wantProduce(r.txnBatch(producerAt{7, 9, 0}, 1), newTxn, offset)
	})
}

// TestAVerdictCountsForEachBatch lists what a guard may have seen.
func TestAVerdictCountsForEachBatch(t *testing.T) {
	q := &question{guard: newGuard(false), start: 600}
	for _, x := range []struct {
		guard guard
		want  *kerr.Error
	}{
		{guard{endedAt: NoStart}, nil},
		{guard{endedAt: 599}, nil},
		{guard{endedAt: 600}, kerr.InvalidTxnState},
		{guard{endedAt: NoStart, ended: true}, kerr.InvalidTxnState},
		{guard{endedAt: NoStart, ending: 1}, kerr.NotLeaderForPartition},
		{guard{endedAt: NoStart, lost: true}, kerr.NotLeaderForPartition},
	} {
		q.guard = &x.guard
		if got := q.verdict(); got != x.want {
			t.Errorf("%+v: %v", x.guard, got)
		}
	}
}

func TestLowestSequenceWins(t *testing.T) {
	onEngines(t, func(t *testing.T, s store.Store) {
		r := newTxnRig(t, s, nil)
		r.wantAppend(r.batch(plain, 1), 0)
		r.coord.holds()
		later := r.begin(r.txnBatch(producerAt{7, 0, 5}, 1), oldTxn)
		first := r.begin(r.txnBatch(producerAt{7, 0, 0}, 5), oldTxn)
		await(t, r.coord.held)(TxnAnswer{Start: NoStart})
		if a := await(t, later); !errors.Is(a.Err, kerr.OutOfOrderSequenceNumber) {
			t.Errorf("%+v", a)
		}
		if a := await(t, first); a.Err != nil || a.BaseOffset != 1 {
			t.Errorf("%+v", a)
		}
		r.coord.says(nil)
		r.wantProduce(r.txnBatch(producerAt{7, 0, 5}, 1), oldTxn, 6)

		r.coord.says(kerr.NotCoordinator) // The question about the first fails.
		r.wantNot(r.txnBatch(producerAt{8, 0, 10}, 5), oldTxn, kerr.NotEnoughReplicas)
		r.coord.says(nil)
		r.wantNot(r.txnBatch(producerAt{8, 0, 15}, 1), oldTxn, kerr.OutOfOrderSequenceNumber)
		r.wantProduce(r.txnBatch(producerAt{8, 0, 10}, 5), oldTxn, 7)
		r.wantProduce(r.txnBatch(producerAt{8, 0, 15}, 1), oldTxn, 12)
		if n := len(r.part().questions.lowest); n != 0 {
			t.Errorf("%d are remembered", n)
		}
		r.wantProduce(r.txnBatch(producerAt{9, 0, 99}, 1), oldTxn, 13) // Its state may have expired.
	})
}

func TestLowestSequencesAreForgotten(t *testing.T) {
	r := newTxnRig(t, mem.New(), nil)
	r.wantAppend(r.batch(plain, 1), 0)
	r.coord.says(kerr.NotCoordinator)
	r.wantNot(r.txnBatch(producerAt{8, 0, 10}, 1), oldTxn, kerr.NotEnoughReplicas)
	r.now = r.now.Add(25 * time.Hour)
	r.part().expireProducers(r.now)
	r.coord.says(nil)
	r.wantProduce(r.txnBatch(producerAt{8, 0, 11}, 1), oldTxn, 1)
	for id := range int64(maxLowest + 10) {
		r.part().questions.lowerTo(r.batch(producerAt{100 + id, 0, 1}, 1), r.now)
	}
	if n := len(r.part().questions.lowest); n != maxLowest {
		t.Errorf("%d are remembered", n)
	}
}

func TestTV2StartsAtZero(t *testing.T) {
	onEngines(t, func(t *testing.T, s store.Store) {
		r := newTxnRig(t, s, nil)
		r.wantAppend(r.batch(plain, 1), 0)
		r.wantNot(r.txnBatch(producerAt{7, 0, 3}, 1), newTxn, kerr.OutOfOrderSequenceNumber)
		r.wantProduce(r.txnBatch(producerAt{7, 0, 0}, 3), newTxn, 1)
		m := marker(7, 1, true)
		m.Version = 2
		r.wantMarker(m, nil, 1)
		r.wantNot(r.txnBatch(producerAt{7, 1, 3}, 1), newTxn, kerr.OutOfOrderSequenceNumber)
		r.wantProduce(r.txnBatch(producerAt{7, 1, 0}, 1), newTxn, 5)
	})
}

func TestDuplicateInTransaction(t *testing.T) {
	onEngines(t, func(t *testing.T, s store.Store) {
		r := newTxnRig(t, s, nil)
		r.wantProduce(r.txnBatch(producerAt{7, 0, 0}, 2), oldTxn, 0)
		r.wantProduce(r.txnBatch(producerAt{7, 0, 0}, 2), oldTxn, 0)
		r.wantMarker(marker(7, 0, true), nil, 1)
		asked := r.coord.questions()
		r.coord.says(kerr.TransactionAbortable)
		r.wantProduce(r.txnBatch(producerAt{7, 0, 0}, 2), oldTxn, 0) // Also when the transaction has ended.
		if r.coord.questions() != asked {
			t.Error("the coordinator was asked about a batch that is in the log")
		}
		r.wantStable(3)
	})
}

func TestPlainBatchInOpenTransaction(t *testing.T) {
	onEngines(t, func(t *testing.T, s store.Store) {
		r := newTxnRig(t, s, nil)
		r.wantProduce(r.txnBatch(producerAt{7, 0, 0}, 1), oldTxn, 0)
		r.wantNot(r.batch(producerAt{7, 0, 1}, 1), oldTxn, kerr.InvalidTxnState)
		r.wantNot(r.batch(producerAt{7, 1, 0}, 1), oldTxn, kerr.InvalidTxnState)
		r.wantNot(r.txnBatch(producerAt{7, 1, 0}, 1), oldTxn, kerr.InvalidTxnState) // Of two epochs in one.
		r.wantMarker(marker(7, 0, true), nil, 1)
		r.wantAppend(r.batch(producerAt{7, 0, 1}, 1), 2)
	})
}

// TestStreamsHaveNoPlaceForTransactions tells so before anybody is asked.
func TestStreamsHaveNoPlaceForTransactions(t *testing.T) {
	r := newTxnRig(t, redisStore(t, redistest.Single(t), "streams", time.Minute), map[string]string{"muster.redis.layout": "stream"})
	r.wantNot(r.txnBatch(producerAt{7, 0, 0}, 1), oldTxn, kerr.UnsupportedForMessageFormat)
	r.wantMarker(marker(7, 0, true), kerr.UnsupportedForMessageFormat, 0)
	if r.coord.questions() != 0 {
		t.Error("the coordinator was asked")
	}
}

// TestAnAnswerIsNoUseToTheNextTransaction ends a transaction and begins the next while
// the batches that waited for the answer are still being appended.
func TestAnAnswerIsNoUseToTheNextTransaction(t *testing.T) {
	r := newTxnRig(t, mem.New(), nil)
	next := make(chan (<-chan Appended), 1)
	r.part().Append(t.Context(), r.txnBatch(producerAt{7, 0, 0}, 1), oldTxn, func(Appended) {
		r.part().WriteMarker(t.Context(), marker(7, 0, true), func(*kerr.Error) {
			next <- r.begin(r.txnBatch(producerAt{7, 0, 1}, 1), oldTxn)
		})
	})
	if a := await(t, await(t, next)); a.Err != nil || a.BaseOffset != 2 {
		t.Errorf("%+v", a)
	}
	if n := r.coord.questions(); n != 2 {
		t.Errorf("asked %d times", n)
	}
}
