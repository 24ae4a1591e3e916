package partition

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/metadata"
	"muster/internal/record"
	"muster/internal/store"
	"muster/internal/store/mem"
)

// shaky is a store whose logs have no replicas while away is set.
type shaky struct {
	store.Store
	away atomic.Bool
}

func (s *shaky) Open(ctx context.Context, tp store.TopicPartition, epoch int32, cfg store.LogConfig) (store.Log, error) {
	l, err := s.Store.Open(ctx, tp, epoch, cfg)
	return shakyLog{l, s}, err
}

type shakyLog struct {
	store.Log
	s *shaky
}

func (l shakyLog) Flush(done func(error)) {
	if l.s.away.Load() {
		done(store.ErrNotReplicated)
		return
	}
	l.Log.Flush(done)
}

// TestAMarkerThatIsDurableLateIsShown has a marker in the log that replicas lacked.
// It is sent again, and once that is answered no one sends it any more.
func TestAMarkerThatIsDurableLateIsShown(t *testing.T) {
	replicas := &shaky{Store: mem.New()}
	s := &pipe{Store: replicas}
	r := newTxnRig(t, s, nil)
	s.opens(r, producerAt{7, 0, 0}, 0)
	replicas.away.Store(true)
	done := r.beginMarker(marker(7, 0, true))
	s.next(false)
	if err := await(t, done); !errors.Is(err, kerr.NotEnoughReplicasAfterAppend) {
		t.Fatalf("got %v", err)
	}
	r.wantStable(0)
	replicas.away.Store(false)
	r.wantMarker(marker(7, 0, true), nil, 0)
	r.wantStable(2)
}

// TestAnOwnMarkerIsDurable wants of a marker that this broker makes for itself what
// is wanted of others: its coordinator forgets the transaction.
func TestAnOwnMarkerIsDurable(t *testing.T) {
	s := &heldFlushes{Store: mem.New()}
	r := newTxnRig(t, s, nil)
	r.deps.flushAll = func() bool { return false }
	r.wantOwn(r.txnBatch(producerAt{7, 0, -1}, 1), 0)
	b, err := record.BuildMarker(7, 0, record.Marker{Commit: true, CoordinatorEpoch: 3}, r.now.UnixMilli())
	must(t, err)
	done := r.beginOwn(b)
	if len(done) > 0 || s.count() != 1 {
		t.Fatalf("a marker is answered before it is durable; %d flushes", s.count())
	}
	r.wantStable(0)
	s.held[0](nil)
	if o := await(t, done); o.err != nil || o.base != 1 {
		t.Errorf("%+v", o)
	}
	r.wantStable(2)
}

// TestWhatIsDecidedOfTransactionsIsDurable wants the same of the records that markers rest
// on.
func TestWhatIsDecidedOfTransactionsIsDurable(t *testing.T) {
	s := &heldFlushes{Store: mem.New()}
	r := newTxnRig(t, s, nil)
	r.deps.flushAll = func() bool { return false }
	r.wantOwn(r.batch(plain, 1), 0)
	r.part().topic = metadata.TransactionsTopic
	done := r.beginOwn(r.batch(plain, 1))
	if len(done) > 0 || s.count() != 1 {
		t.Fatalf("a decision is answered before it is durable; %d flushes", s.count())
	}
	s.held[0](nil)
	if o := await(t, done); o.err != nil || o.base != 1 {
		t.Errorf("%+v", o)
	}
}

type ownOutcome struct {
	base int64
	err  error
}

func (r *rig) beginOwn(b record.Batch) <-chan ownOutcome {
	done := make(chan ownOutcome, 1)
	r.part().AppendOwn(r.t.Context(), b, func(base int64, err error) { done <- ownOutcome{base, err} })
	return done
}

func (r *rig) wantOwn(b record.Batch, base int64) {
	r.t.Helper()
	if o := await(r.t, r.beginOwn(b)); o.err != nil || o.base != base {
		r.t.Fatalf("got %+v, want offset %d", o, base)
	}
}
