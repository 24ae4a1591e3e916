package partition

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/redistest"
	"muster/internal/store"
	"muster/internal/store/mem"
)

// pipe is a store whose logs have appends under way until the test lets them go, or
// for a moment.
type pipe struct {
	store.Store
	mu    sync.Mutex
	queue []func(fail bool)
	free  bool // nothing is held
	going bool
	fails bool // an append has failed, and with it all after it
	boom  bool // the next one panics, though it is begun
}

func (s *pipe) Open(ctx context.Context, tp store.TopicPartition, epoch int32, cfg store.LogConfig) (store.Log, error) {
	l, err := s.Store.Open(ctx, tp, epoch, cfg)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fails = false
	return &pipeLog{l, s}, err
}

type pipeLog struct {
	store.Log
	s *pipe
}

func (l *pipeLog) Begin(ctx context.Context, batch []byte, done func(store.Appended, error)) {
	b := bytes.Clone(batch)
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	l.s.queue = append(l.s.queue, func(fail bool) {
		if fail {
			done(store.Appended{}, store.ErrFailed)
			return
		}
		done(l.Append(ctx, b))
	})
	if l.s.boom {
		l.s.boom = false
		panic("a defect")
	}
	if l.s.free && !l.s.going {
		l.s.going = true
		go func() {
			for l.s.next(false) {
			}
		}()
	}
}

// next lets the oldest append go, if there is one.
func (s *pipe) next(fail bool) bool {
	s.mu.Lock()
	if len(s.queue) == 0 {
		s.going = false
		s.mu.Unlock()
		return false
	}
	f := s.queue[0]
	s.queue = s.queue[1:]
	s.fails = s.fails || fail
	fail = s.fails
	s.mu.Unlock()
	f(fail)
	return true
}

func (s *pipe) underWay() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue)
}

func newPipe(t *testing.T) (*pipe, *txnRig) {
	s := &pipe{Store: mem.New()}
	return s, newTxnRig(t, s, nil)
}

// opens begins a transaction of a producer.
func (s *pipe) opens(r *txnRig, at producerAt, offset int64) {
	r.t.Helper()
	r.part().mu.Lock()
	before := len(r.part().underWay)
	r.part().mu.Unlock()
	c := r.begin(r.txnBatch(at, 1), oldTxn)
	r.begun(before + 1)
	s.next(false)
	if a := await(r.t, c); a.Err != nil || a.BaseOffset != offset {
		r.t.Fatalf("%+v", a)
	}
}

// begun waits until so many appends are under way.
func (r *txnRig) begun(n int) {
	r.t.Helper()
	redistest.Eventually(r.t, "the append to be begun", func() bool {
		r.part().mu.Lock()
		defer r.part().mu.Unlock()
		return len(r.part().underWay) >= n
	})
}

// TestAMarkerUnderWayEndsNothingYet looks at everything that a marker ends while the
// store has not taken it.
func TestAMarkerUnderWayEndsNothingYet(t *testing.T) {
	s, r := newPipe(t)
	s.opens(r, producerAt{7, 0, 0}, 0)
	r.coord.holds()
	other := r.begin(r.txnBatch(producerAt{7, 1, 0}, 1), oldTxn) // Of the next epoch, too early.
	answer := await(t, r.coord.held)
	done, again := r.beginMarker(marker(7, 0, false)), r.beginMarker(marker(7, 0, false))
	if s.underWay() != 1 {
		t.Fatalf("%d are under way", s.underWay())
	}
	r.wantStable(0)
	if open := r.part().OpenTxns(); len(open) != 0 {
		t.Errorf("open: %+v", open)
	}
	answer(TxnAnswer{Start: NoStart})
	if a := await(t, other); !errors.Is(a.Err, kerr.NotLeaderForPartition) {
		t.Errorf("a batch is answered %+v while it is not known whether the marker is stored", a)
	}
	behind := r.begin(r.txnBatch(producerAt{7, 0, 1}, 1), oldTxn)
	if len(done)+len(again) != 0 {
		t.Error("a marker is answered that is under way")
	}
	s.next(false)
	for _, c := range []<-chan *kerr.Error{done, again} {
		if err := await(t, c); err != nil {
			t.Error(err)
		}
	}
	r.wantStable(2)
	await(t, r.coord.held)(TxnAnswer{Start: NoStart})
	r.begun(1) // It was asked about after the marker was on its way.
	s.next(false)
	if a := await(t, behind); a.Err != nil || a.BaseOffset != 2 {
		t.Errorf("%+v", a)
	}
	_, f := r.fetch(0, true, 1<<20)
	wantAborted(t, f, store.Aborted{ProducerID: 7, FirstOffset: 0, LastOffset: 1})
}

// TestAMarkerBehindTheFirstBatch has both under way at once, and the next transaction
// too.
func TestAMarkerBehindTheFirstBatch(t *testing.T) {
	s, r := newPipe(t)
	first := r.begin(r.txnBatch(producerAt{7, 0, 0}, 2), oldTxn)
	r.begun(1)
	done := r.beginMarker(marker(7, 0, false))
	second := r.begin(r.txnBatch(producerAt{7, 0, 2}, 1), oldTxn)
	r.begun(3)
	if x := r.part().Producers()[0]; x.TxnFirst != 0 {
		t.Errorf("a transaction that begins at the end of the log is told to begin at %d", x.TxnFirst)
	}
	s.next(false)
	await(t, first)
	r.wantStable(0)
	if x := r.part().producers[7]; x.TxnFirst != firstUnderWay {
		t.Errorf("the second transaction is taken for the first: %+v", x)
	}
	s.next(false)
	if err := await(t, done); err != nil {
		t.Error(err)
	}
	r.wantStable(3)
	s.next(false)
	if a := await(t, second); a.Err != nil || a.BaseOffset != 3 {
		t.Errorf("%+v", a)
	}
	r.wantStable(3)
	if open := r.part().OpenTxns(); len(open) != 1 || open[0].FirstOffset != 3 {
		t.Errorf("open: %+v", open)
	}
	_, f := r.fetch(0, true, 1<<20)
	wantAborted(t, f, store.Aborted{ProducerID: 7, FirstOffset: 0, LastOffset: 2})
}

// TestAMarkerThatFailsUnderWay is one that the store does not take.
func TestAMarkerThatFailsUnderWay(t *testing.T) {
	s, r := newPipe(t)
	s.opens(r, producerAt{7, 0, 0}, 0)
	done, again := r.beginMarker(marker(7, 1, false)), r.beginMarker(marker(7, 1, false))
	s.next(true)
	for _, c := range []<-chan *kerr.Error{done, again} {
		if err := await(t, c); err == nil {
			t.Error("a marker is acknowledged that is not in the log")
		}
	}
	r.wantStable(0)
	more := r.begin(r.txnBatch(producerAt{7, 0, 1}, 1), oldTxn) // The epoch has not risen, and it is open.
	r.begun(1)
	s.next(false)
	if a := await(t, more); a.Err != nil || a.BaseOffset != 1 {
		t.Errorf("%+v", a)
	}
	done = r.beginMarker(marker(7, 1, false))
	s.next(false)
	if err := await(t, done); err != nil {
		t.Error(err)
	}
	r.wantStable(3)
}

// TestARepeatedMarkerWaitsForItself has the ends of two transactions under way, and
// the second is sent again.
func TestARepeatedMarkerWaitsForItself(t *testing.T) {
	s, r := newPipe(t)
	s.opens(r, producerAt{7, 0, 0}, 0)
	first := r.beginMarker(marker(7, 0, true))
	more := r.begin(r.txnBatch(producerAt{7, 0, 1}, 1), oldTxn)
	r.begun(2)
	second := r.beginMarker(marker(7, 0, true))
	again := r.beginMarker(marker(7, 0, true))
	s.next(false)
	if err := await(t, first); err != nil {
		t.Error(err)
	}
	if len(again) != 0 {
		t.Error("a marker is acknowledged that is under way")
	}
	s.next(false)
	s.next(true)
	if a := await(t, more); a.Err != nil {
		t.Errorf("%+v", a)
	}
	for _, c := range []<-chan *kerr.Error{second, again} {
		if err := await(t, c); err == nil {
			t.Error("a marker is acknowledged that is not in the log")
		}
	}
}

// TestAnAppendOfALogBeforeIsNoneOfThisOne has an append whose outcome comes after the
// log was opened again, and after its producer has sent it again.
func TestAnAppendOfALogBeforeIsNoneOfThisOne(t *testing.T) {
	s, r := newPipe(t)
	late := r.begin(r.txnBatch(producerAt{7, 0, 0}, 1), oldTxn)
	r.begun(1)
	s.mu.Lock()
	outcome := s.queue[0]
	s.queue = nil
	s.mu.Unlock()
	must(t, r.part().Reopen(t.Context()))
	s.opens(r, producerAt{7, 0, 0}, 0)
	if open := r.part().OpenTxns(); len(open) != 1 || open[0].FirstOffset != 0 {
		t.Errorf("open: %+v", open)
	}
	outcome(true)
	if a := await(t, late); a.Err == nil {
		t.Errorf("%+v", a)
	}
	if open := r.part().OpenTxns(); len(open) != 1 {
		t.Errorf("open: %+v", open)
	}
}
