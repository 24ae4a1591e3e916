package partition

import (
	"testing"

	"muster/internal/record"
	"muster/internal/store/mem"
)

// TestAnOwnMarkerIsDurable wants of a marker that this broker makes for itself what
// is wanted of others: its coordinator forgets the transaction.
func TestAnOwnMarkerIsDurable(t *testing.T) {
	s := &heldFlushes{Store: mem.New()}
	r := newTxnRig(t, s, nil)
	r.deps.flushAll = func() bool { return false }
	r.wantOwn(r.txnBatch(producerAt{7, 0, -1}, 1), 0)
	b, err := record.BuildMarker(7, 0, record.Marker{Commit: true, CoordinatorEpoch: 3}, r.now.UnixMilli())
	if err != nil {
		t.Fatal(err)
	}
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
