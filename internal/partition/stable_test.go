package partition

import (
	"testing"
	"time"

	"muster/internal/redistest"
	"muster/internal/store"
	"muster/internal/store/mem"
	"muster/internal/store/vfs"
)

func TestLSOWithTwoOpen(t *testing.T) {
	onEngines(t, func(t *testing.T, s store.Store) {
		r := newTxnRig(t, s, nil)
		r.wantAppend(r.batch(plain, 1), 0)
		r.wantProduce(r.txnBatch(producerAt{7, 0, 0}, 1), oldTxn, 1)
		r.wantProduce(r.txnBatch(producerAt{8, 0, 0}, 1), oldTxn, 2)
		r.wantAppend(r.batch(plain, 1), 3)
		r.wantStable(1)
		r.wantMarker(marker(8, 0, true), nil, 1) // The later first.
		r.wantStable(1)
		r.wantProduce(r.txnBatch(producerAt{9, 0, 0}, 1), oldTxn, 5)
		r.wantMarker(marker(7, 0, true), nil, 1)
		r.wantStable(5)
		if _, f := r.fetch(0, false, 1<<20); f.LastStableOffset != 5 || f.HighWatermark != 7 {
			t.Errorf("%+v", f) // It is told to everybody.
		}
		r.wantMarker(marker(9, 0, false), nil, 1)
		r.wantStable(8)
	})
}

// TestLSOWaitsForDurableMarker has a marker that is in the log, and that a loss of
// power may take away. Not even a batch behind it, which readers may see before it
// is durable, makes it count.
func TestLSOWaitsForDurableMarker(t *testing.T) {
	s := &heldFlushes{Store: mem.New()}
	r := newTxnRig(t, s, nil)
	data := r.begin(r.txnBatch(producerAt{7, 0, 0}, 1), oldTxn)
	redistest.Eventually(t, "the data to be appended", func() bool { return s.count() == 1 })
	done := r.beginMarker(marker(7, 0, true))
	s.held[0](nil)
	await(t, data)
	r.wantStable(0) // The marker is at the high watermark.
	if a := r.append(r.batch(plain, 1), 1); a.Err != nil {
		t.Fatal(a.Err)
	}
	if hw := r.part().HighWatermark(); hw != 3 || len(done) != 0 {
		t.Fatalf("high watermark %d, the marker is answered: %v", hw, len(done) > 0)
	}
	r.wantStable(0)
	waiter := NewWaiter()
	r.part().WatchCommitted(waiter)
	s.held[1](nil)
	if err := await(t, done); err != nil {
		t.Fatal(err)
	}
	await(t, waiter.C)
	r.wantStable(3)
}

func TestFetchWakesOnLSO(t *testing.T) {
	onEngines(t, func(t *testing.T, s store.Store) {
		r := newTxnRig(t, s, nil)
		committed, all := NewWaiter(), NewWaiter()
		r.part().WatchCommitted(committed)
		r.part().Watch(all)
		woken := func(c, a bool) {
			t.Helper()
			if len(committed.C) == 1 != c || len(all.C) == 1 != a {
				t.Errorf("woken: %d and %d", len(committed.C), len(all.C))
			}
			for _, w := range []*Waiter{committed, all} {
				select {
				case <-w.C:
				default:
				}
			}
		}
		r.wantAppend(r.batch(plain, 1), 0)
		woken(true, true)
		r.wantProduce(r.txnBatch(producerAt{7, 0, 0}, 1), oldTxn, 1)
		woken(false, true)
		r.wantAppend(r.batch(plain, 1), 2)
		woken(false, true)
		r.wantMarker(marker(7, 0, true), nil, 1)
		woken(true, true)
		r.part().Unwatch(committed)
		r.part().Unwatch(all)
		r.wantAppend(r.batch(plain, 1), 4)
		woken(false, false)
	})
}

// TestLSOIsNotTakenFromWhatIsNotShown opens the log again while the marker in it is
// neither durable nor shown.
func TestLSOIsNotTakenFromWhatIsNotShown(t *testing.T) {
	s := &heldFlushes{Store: mem.New()}
	r := newTxnRig(t, s, nil)
	data := oldTxn
	data.Acks = 1
	r.wantProduce(r.txnBatch(producerAt{7, 0, 0}, 2), data, 0)
	r.beginMarker(marker(7, 0, true))
	reopened := make(chan error, 1)
	old := r.part().log.Load()
	go func() { reopened <- r.part().Reopen(t.Context()) }()
	redistest.Eventually(t, "the log to be opened again", func() bool { return r.part().log.Load() != old })
	r.wantStable(0)
	redistest.Eventually(t, "the log to be opened again", func() bool { return s.count() == 2 })
	if a := r.append(r.batch(plain, 1), 1); a.Err != nil || r.part().HighWatermark() != 4 {
		t.Fatal(a)
	}
	r.wantStable(0)
	s.held[1](nil)
	must(t, await(t, reopened))
	r.wantStable(4)
}

// restarts are the ways in which a partition ends, each with the files that it leaves.
var restarts = map[string]func(r *txnRig, fs *vfs.Mem) vfs.FS{
	"clean": func(r *txnRig, fs *vfs.Mem) vfs.FS {
		must(r.t, r.Close(r.t.Context()))
		_ = r.deps.store.Close()
		return fs
	},
	"crash": func(_ *txnRig, fs *vfs.Mem) vfs.FS { return fs.CrashStrict() },
}

func TestOpenTransactionsSurviveARestart(t *testing.T) {
	for name, crash := range restarts {
		t.Run(name, func(t *testing.T) {
			fs := vfs.NewMem()
			r := newTxnRig(t, diskStore(t, fs), nil)
			r.wantProduce(r.txnBatch(producerAt{7, 0, 0}, 1), oldTxn, 0)
			r.wantMarker(marker(7, 0, true), nil, 1)
			r.wantProduce(r.txnBatch(producerAt{8, 0, 0}, 1), oldTxn, 2)
			r.wantProduce(r.txnBatch(producerAt{7, 0, 1}, 1), oldTxn, 3)
			r = newTxnRig(t, diskStore(t, crash(r, fs)), nil)
			r.wantStable(2)
			r.wantProduce(r.txnBatch(producerAt{7, 0, 2}, 1), oldTxn, 4) // Which is open.
			if r.coord.questions() != 0 {
				t.Error("the coordinator was asked")
			}
			r.wantMarker(marker(8, 0, true), nil, 1)
			r.wantStable(3)
			r.wantMarker(marker(7, 0, true), nil, 1)
			r.wantStable(7)
		})
	}
}

func TestListOffsetsIsolation(t *testing.T) {
	onEngines(t, func(t *testing.T, s store.Store) {
		r := newTxnRig(t, s, nil)
		r.wantAppend(r.batch(plain, 1), 0)
		stamp := r.now.UnixMilli()
		r.now = r.now.Add(time.Second)
		r.wantProduce(r.txnBatch(producerAt{7, 0, 0}, 1), oldTxn, 1)
		p := r.part()
		for ts, want := range map[int64]bool{stamp: true, r.now.UnixMilli(): false} {
			if at, ok, err := p.OffsetForTimestamp(t.Context(), ts, p.LastStableOffset()); err != nil || ok != want {
				t.Errorf("%d: %+v, %v, %v", ts, at, ok, err)
			}
		}
		if at, ok, err := p.MaxTimestamp(t.Context(), p.LastStableOffset()); err != nil || ok {
			t.Errorf("%+v, %v, %v", at, ok, err)
		}
		if at, ok, err := p.MaxTimestamp(t.Context(), p.HighWatermark()); err != nil || !ok || at.Offset != 1 {
			t.Errorf("%+v, %v, %v", at, ok, err)
		}
	})
}

func TestDeleteRecordsThroughOpen(t *testing.T) {
	onEngines(t, func(t *testing.T, s store.Store) {
		r := newTxnRig(t, s, nil)
		r.wantProduce(r.txnBatch(producerAt{7, 0, 0}, 3), oldTxn, 0)
		r.wantAppend(r.batch(plain, 2), 3)
		r.wantStable(0)
		if start, err := r.part().DeleteBefore(t.Context(), 4); err != nil || start != 4 {
			t.Fatal(start, err)
		}
		r.wantStable(4)
		if got, f := r.fetch(4, true, 1<<20); len(got) != 0 || f.LastStableOffset != 4 {
			t.Errorf("%v, %+v", bases(got), f)
		}
		if open := r.part().OpenTxns(); len(open) != 1 {
			t.Errorf("open: %+v", open)
		}
		r.wantMarker(marker(7, 0, false), nil, 1)
		r.wantStable(6)
		_, f := r.fetch(4, true, 1<<20)
		wantAborted(t, f, store.Aborted{ProducerID: 7, FirstOffset: 0, LastOffset: 5})
	})
}

func TestRetentionThroughOpen(t *testing.T) {
	r := newTxnRig(t, diskStore(t, vfs.NewMem()), map[string]string{"retention.ms": "60000"})
	r.wantProduce(r.txnBatch(producerAt{7, 0, 0}, 3), oldTxn, 0)
	r.now = r.now.Add(time.Hour)
	r.each(t.Context(), "retention", (*Partition).Retain)
	if start := r.part().LogStartOffset(); start != 3 {
		t.Fatalf("log start %d", start)
	}
	r.wantStable(3)
	r.wantProduce(r.txnBatch(producerAt{7, 0, 3}, 1), oldTxn, 3) // It is still open.
	r.wantStable(3)
	r.wantMarker(marker(7, 0, true), nil, 1)
	r.wantStable(5)
}

func TestCompactStopsAtLSO(t *testing.T) {
	r := newTxnRig(t, mem.New(), map[string]string{"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0"})
	r.wantAppend(r.batch(plain, 1, "key"), 0)
	r.wantProduce(r.txnBatch(producerAt{7, 0, 0}, 1, "key"), oldTxn, 1)
	r.wantAppend(r.batch(plain, 1, "key"), 2)
	size := r.part().Size()
	r.each(t.Context(), "compaction", (*Partition).compact)
	if got := r.part().Size(); got != size {
		t.Errorf("compaction left %d bytes of %d: what supersedes is not decided", got, size)
	}
	r.wantMarker(marker(7, 0, true), nil, 1)
	r.wantAppend(r.batch(plain, 1, "other"), 4)
	r.each(t.Context(), "compaction", (*Partition).compact)
	if got := r.part().Size(); got >= size+78 {
		t.Errorf("compaction left %d bytes of %d", got, size)
	}
}

func TestProducerExpirySparesOpen(t *testing.T) {
	r := newTxnRig(t, mem.New(), nil)
	r.wantProduce(r.txnBatch(producerAt{7, 0, 0}, 1), oldTxn, 0)
	r.wantAppend(r.batch(producerAt{8, 0, 0}, 1), 1)
	r.now = r.now.Add(48 * time.Hour)
	r.part().expireProducers(r.now)
	if got := r.part().Producers(); len(got) != 1 || got[0].ID != 7 {
		t.Errorf("left: %+v", got)
	}
	r.wantMarker(marker(7, 0, true), nil, 1)
	r.wantStable(3)
	r.now = r.now.Add(48 * time.Hour)
	r.part().expireProducers(r.now)
	if got := r.part().Producers(); len(got) != 0 {
		t.Errorf("left: %+v", got)
	}
}

// Whoever reads while a log is opened again is not told of a last stable offset below one
// that was told before.
func TestLSODoesNotGoBackWhileTheLogIsOpenedAgain(t *testing.T) {
	r := newTxnRig(t, mem.New(), nil)
	for i := range int64(3) {
		r.wantAppend(r.batch(plain, 1), i)
	}
	r.wantStable(3)
	p := r.part()
	p.mu.Lock()
	_, err := p.openLog(t.Context())
	p.mu.Unlock()
	must(t, err)
	r.wantStable(3)
}
