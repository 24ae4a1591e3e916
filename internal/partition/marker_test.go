package partition

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/record"
	"muster/internal/store"
	"muster/internal/store/mem"
	"muster/internal/store/vfs"
)

func TestControlBatchBytes(t *testing.T) {
	onEngines(t, func(t *testing.T, s store.Store) {
		for kind, commit := range []bool{false, true} {
			r := newTxnRig(t, s, nil)
			end := r.part().LogEndOffset()
			r.wantMarker(marker(7, int16(kind), commit), nil, 1)
			batches, _ := r.fetch(end, false, 1<<20)
			b := batches[0]
			if len(batches) != 1 || len(b) != 78 || b.Attributes() != 0x30 || b.ProducerID() != 7 || b.ProducerEpoch() != int16(kind) || b.BaseSequence() != -1 || b.Count() != 1 || !b.ChecksumOK() {
				t.Fatalf("%d batches, of which the first is %x", len(batches), []byte(b))
			}
			key := binary.BigEndian.AppendUint16([]byte{0, 0}, uint16(kind))
			value := []byte{0, 0, 0, 0, 0, 3}
			if !bytes.Contains(b, key) || !bytes.Contains(b, value) || !bytes.HasSuffix(b, append(append(append([]byte{8}, key...), 12), append(value, 0)...)) {
				t.Errorf("its record is %x", []byte(b[61:]))
			}
		}
		r := newTxnRig(t, s, nil)
		own, _ := record.BuildMarker(7, 1, record.Marker{}, 0)
		r.wantNot(own, oldTxn, kerr.InvalidRecord) // Clients may not.
	})
}

func TestMarkerEpochTV1(t *testing.T) {
	onEngines(t, func(t *testing.T, s store.Store) {
		r := newTxnRig(t, s, nil)
		r.wantProduce(r.txnBatch(producerAt{7, 2, 0}, 1), oldTxn, 0)
		r.wantMarker(marker(7, 1, true), kerr.InvalidProducerEpoch, 0)
		r.wantStable(0)
		r.wantMarker(marker(7, 2, true), nil, 1)
		r.wantStable(2)
		r.wantProduce(r.txnBatch(producerAt{7, 2, 1}, 1), oldTxn, 2) // The batches are not forgotten.
		r.wantMarker(marker(7, 3, false), nil, 1)                    // Fenced: the epoch rises …
		r.wantNot(r.txnBatch(producerAt{7, 2, 2}, 1), oldTxn, kerr.InvalidProducerEpoch)
		r.wantNot(r.txnBatch(producerAt{7, 4, 2}, 1), oldTxn, kerr.OutOfOrderSequenceNumber)
		if x := r.part().Producers()[0]; x.Epoch != 3 || len(x.Batches) != 0 || x.TxnFirst != store.NoTxn || x.CoordinatorEpoch != 3 {
			t.Errorf("after a marker that raises the epoch: %+v", x) // … and the batches are forgotten.
		}
	})
}

func TestMarkerEpochTV2(t *testing.T) {
	onEngines(t, func(t *testing.T, s store.Store) {
		r := newTxnRig(t, s, nil)
		end := func(epoch int16) Marker {
			m := marker(7, epoch, true)
			m.Version = 2
			return m
		}
		r.wantProduce(r.txnBatch(producerAt{7, 2, 0}, 1), newTxn, 0)
		r.wantMarker(end(1), kerr.InvalidProducerEpoch, 0)
		r.wantMarker(end(2), kerr.InvalidProducerEpoch, 0) // It ended the one before.
		r.wantStable(0)
		r.wantMarker(end(3), nil, 1)
		r.wantStable(2)
		r.wantMarker(end(3), nil, 0) // A repeat.
		r.wantProduce(r.txnBatch(producerAt{7, 3, 0}, 1), newTxn, 2)
		r.wantMarker(end(3), kerr.InvalidProducerEpoch, 0) // A late repeat.
		r.wantStable(2)
	})
}

func TestRepeatedMarker(t *testing.T) {
	onEngines(t, func(t *testing.T, s store.Store) {
		r := newTxnRig(t, s, nil)
		r.wantProduce(r.txnBatch(producerAt{7, 0, 0}, 1), oldTxn, 0)
		r.wantMarker(marker(7, 0, true), nil, 1)
		r.wantMarker(marker(7, 0, true), nil, 0)
		next := marker(7, 0, true)
		next.CoordinatorEpoch = 4
		r.wantMarker(next, nil, 1) // The older coordinator must be fenced.
		r.wantMarker(next, nil, 0)
		r.wantStable(3)
	})
}

// TestARepeatedMarkerIsAnsweredWhenTheFirstIsDurable repeats one that is not.
func TestARepeatedMarkerIsAnsweredWhenTheFirstIsDurable(t *testing.T) {
	s := &heldFlushes{Store: mem.New()}
	r := newTxnRig(t, s, nil)
	first := r.beginMarker(marker(7, 0, true))
	again := r.beginMarker(marker(7, 0, true))
	if len(first)+len(again) != 0 || len(s.held) != 2 {
		t.Fatalf("%d and %d are answered, %d flushes are asked for", len(first), len(again), len(s.held))
	}
	s.held[1](nil)
	if err := await(t, again); err != nil || len(first) != 0 {
		t.Error(err, len(first))
	}
}

func TestLateMarkerSparesNextTransaction(t *testing.T) {
	onEngines(t, func(t *testing.T, s store.Store) {
		r := newTxnRig(t, s, nil)
		at := func(start int64) Marker {
			m := marker(7, 0, false)
			m.Start = start
			return m
		}
		r.coord.answer.Start = 1000
		r.wantProduce(r.txnBatch(producerAt{7, 0, 0}, 1), oldTxn, 0)
		r.wantMarker(at(1000), nil, 1)
		r.coord.answer.Start = 2000
		r.wantProduce(r.txnBatch(producerAt{7, 0, 1}, 1), oldTxn, 2)
		r.wantMarker(at(1000), nil, 0) // The one before, again.
		r.wantStable(2)
		must(t, r.part().Reopen(t.Context()))
		r.wantMarker(at(1000), nil, 0) // The log is another handle, and the start still known.
		r.wantMarker(at(2000), nil, 1)
		r.wantStable(4)
	})
}

func TestStaleCoordinatorEpoch(t *testing.T) {
	onEngines(t, func(t *testing.T, s store.Store) {
		r := newTxnRig(t, s, nil)
		r.wantMarker(marker(7, 0, true), nil, 1)
		r.wantProduce(r.txnBatch(producerAt{7, 0, 0}, 1), oldTxn, 1)
		stale := marker(7, 0, false)
		stale.CoordinatorEpoch = 2
		r.wantMarker(stale, kerr.TransactionCoordinatorFenced, 0)
		stale.ProducerEpoch = 1
		r.wantMarker(stale, kerr.TransactionCoordinatorFenced, 0)
		r.wantStable(1)
		stale.ProducerID = 8 // It is another's, who may have another coordinator.
		r.wantMarker(stale, nil, 1)
	})
}

func TestMarkerWithoutData(t *testing.T) {
	onEngines(t, func(t *testing.T, s store.Store) {
		r := newTxnRig(t, s, nil)
		r.wantMarker(marker(7, 5, false), nil, 1)
		r.wantStable(1)
		r.wantNot(r.txnBatch(producerAt{7, 4, 0}, 1), oldTxn, kerr.InvalidProducerEpoch)
		if _, f := r.fetch(0, true, 1<<20); len(f.Aborted) != 0 {
			t.Errorf("aborted: %+v", f.Aborted)
		}
		r.wantMarker(Marker{ProducerID: -1, Start: NoStart}, kerr.InvalidRequest, 0)
		r.wantMarker(Marker{ProducerEpoch: -1, Start: NoStart}, kerr.InvalidRequest, 0)
	})
}

// TestAMarkerIsDurableWhateverTheSettings counts what was flushed.
func TestAMarkerIsDurableWhateverTheSettings(t *testing.T) {
	fs := vfs.NewMem()
	r := newTxnRig(t, diskStore(t, fs), nil)
	r.deps.flushAll = func() bool { return false }
	r.wantProduce(r.txnBatch(producerAt{7, 0, 0}, 1), oldTxn, 0)
	if end := newRig(t, diskStore(t, fs.CrashStrict()), nil).part().LogEndOffset(); end != 0 {
		t.Fatalf("the data is durable up to %d", end)
	}
	r.wantMarker(marker(7, 0, true), nil, 1)
	if end := newRig(t, diskStore(t, fs.CrashStrict()), nil).part().LogEndOffset(); end != 2 {
		t.Fatalf("after the marker the log is durable up to %d", end)
	}
}

// failing is a log that takes no more batches, or no more aborted transactions.
type failing struct {
	store.Store
	appends, notes bool
}

func (f *failing) Open(ctx context.Context, tp store.TopicPartition, epoch int32, cfg store.LogConfig) (store.Log, error) {
	l, err := f.Store.Open(ctx, tp, epoch, cfg)
	return failingLog{l, f}, err
}

type failingLog struct {
	store.Log
	f *failing
}

func (l failingLog) Append(ctx context.Context, b []byte) (store.Appended, error) {
	if l.f.appends {
		return store.Appended{}, store.ErrStorage
	}
	return l.Log.Append(ctx, b)
}

func (l failingLog) NoteAborted(ctx context.Context, list []store.Aborted) error {
	if l.f.notes && len(list) > 0 {
		return store.ErrStorage
	}
	return l.Log.NoteAborted(ctx, list)
}

// TestAMarkerThatFailsEndsNothing has a disk without room for the marker, and then
// for the list of aborted transactions.
func TestAMarkerThatFailsEndsNothing(t *testing.T) {
	s := &failing{Store: mem.New()}
	r := newTxnRig(t, s, nil)
	r.wantProduce(r.txnBatch(producerAt{7, 0, 0}, 1), oldTxn, 0)
	r.coord.holds()
	waits := r.begin(r.txnBatch(producerAt{8, 0, 0}, 1), oldTxn)
	s.appends = true
	r.wantMarker(marker(7, 0, false), kerr.KafkaStorageError, 0)
	r.wantMarker(marker(8, 0, false), kerr.KafkaStorageError, 0)
	s.appends = false
	await(t, r.coord.held)(TxnAnswer{Start: NoStart})
	if a := await(t, waits); a.Err != nil || a.BaseOffset != 1 {
		t.Errorf("a question that no marker came between: %+v", a)
	}
	r.wantStable(0)
	r.wantProduce(r.txnBatch(producerAt{7, 0, 1}, 1), oldTxn, 2)
	s.notes = true
	r.wantMarker(marker(7, 0, false), kerr.KafkaStorageError, 1)
	r.wantStable(0)
	if _, f := r.fetch(0, false, 1<<20); f.HighWatermark != 3 {
		t.Errorf("the marker is shown: %+v", f)
	}
	s.notes = false
	r.wantMarker(marker(7, 0, false), nil, 0) // The log has it, as is found when it is opened again.
	r.wantStable(1)
	if _, f := r.fetch(0, true, 1<<20); len(f.Aborted) != 1 || f.Aborted[0] != (store.Aborted{ProducerID: 7, FirstOffset: 0, LastOffset: 3}) {
		t.Errorf("aborted: %+v", f.Aborted)
	}
}

func TestAbortOrphanSparesTheNextTransaction(t *testing.T) {
	onEngines(t, func(t *testing.T, s store.Store) {
		r := newTxnRig(t, s, nil)
		began := r.now
		abort := func(o OpenTxn, grows int64) {
			t.Helper()
			end := r.part().LogEndOffset()
			done := make(chan *kerr.Error, 1)
			r.part().AbortOrphan(t.Context(), o, func(err *kerr.Error) { done <- err })
			if err := await(t, done); err != nil || r.part().LogEndOffset() != end+grows {
				t.Errorf("%v, and the log went from %d to %d", err, end, r.part().LogEndOffset())
			}
		}
		r.wantProduce(r.txnBatch(producerAt{7, 0, 0}, 1), oldTxn, 0)
		r.now = r.now.Add(time.Hour)
		r.wantProduce(r.txnBatch(producerAt{8, 0, 0}, 1), oldTxn, 1)
		open := r.part().OpenTxns()
		if len(open) != 2 || open[0].ProducerID != 7 || !open[0].Since.Equal(began) || !open[1].Since.Equal(r.now) || open[1].FirstOffset != 1 || open[0].LastTimestamp != began.UnixMilli() {
			t.Fatalf("open: %+v", open)
		}
		r.wantMarker(marker(7, 0, true), nil, 1)
		r.wantProduce(r.txnBatch(producerAt{7, 0, 1}, 1), oldTxn, 3)
		abort(open[0], 0)
		r.wantStable(1)
		abort(open[1], 1)
		r.wantStable(3)
		open = r.part().OpenTxns()
		if len(open) != 1 || open[0].FirstOffset != 3 || open[0].CoordinatorEpoch != 3 {
			t.Fatalf("open: %+v", open)
		}
		other := open[0]
		other.ProducerEpoch++
		abort(other, 0)
		abort(open[0], 1)
		abort(open[0], 0)
		r.wantStable(6)
	})
}

func TestAppendOwnTakesMarkersIn(t *testing.T) {
	onEngines(t, func(t *testing.T, s store.Store) {
		r := newTxnRig(t, s, nil)
		own := func(b record.Batch) (int64, error) {
			type outcome struct {
				base int64
				err  error
			}
			done := make(chan outcome, 1)
			r.part().AppendOwn(t.Context(), b, func(base int64, err error) { done <- outcome{base, err} })
			o := await(t, done)
			return o.base, o.err
		}
		data := r.txnBatch(producerAt{7, 0, -1}, 2)
		for want := range int64(2) {
			if at, err := own(bytes.Clone(data)); err != nil || at != 2*want {
				t.Fatal(at, err)
			}
		}
		if x := r.part().Producers()[0]; x.TxnFirst != 0 || len(x.Batches) != 0 {
			t.Errorf("%+v", x)
		}
		r.wantStable(0)
		b, _ := record.BuildMarker(7, 0, record.Marker{CoordinatorEpoch: 5}, 1)
		if at, err := own(b); err != nil || at != 4 {
			t.Fatal(at, err)
		}
		r.wantStable(5)
		if x := r.part().Producers()[0]; x.TxnFirst != store.NoTxn || x.CoordinatorEpoch != 5 {
			t.Errorf("%+v", x)
		}
		b, _ = record.BuildMarker(7, 0, record.Marker{}, 1)
		b[len(b)-1]++
		if _, err := own(b); !errors.Is(err, record.ErrCorrupt) {
			t.Errorf("a batch with a mistake: %v", err)
		}
	})
}
