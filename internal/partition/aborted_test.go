package partition

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/record"
	"muster/internal/store"
	"muster/internal/store/mem"
	"muster/internal/store/vfs"
)

func wantAborted(t *testing.T, f Fetched, want ...store.Aborted) {
	t.Helper()
	if f.Aborted == nil || !slices.Equal(f.Aborted, want) {
		t.Errorf("aborted are %+v, want %+v", f.Aborted, want)
	}
}

func TestAbortedListRange(t *testing.T) {
	onEngines(t, func(t *testing.T, s store.Store) {
		r := newTxnRig(t, s, nil)
		r.wantAppend(r.batch(plain, 1), 0)
		if _, f := r.fetch(0, true, 1<<20); f.Aborted == nil || len(f.Aborted) > 0 {
			t.Errorf("without any: %+v", f.Aborted)
		}
		r.wantProduce(r.txnBatch(producerAt{7, 0, 0}, 2), oldTxn, 1)
		r.wantMarker(marker(7, 0, false), nil, 1) // at 3
		r.wantProduce(r.txnBatch(producerAt{7, 0, 2}, 2), oldTxn, 4)
		r.wantMarker(marker(7, 0, true), nil, 1) // at 6
		r.wantProduce(r.txnBatch(producerAt{8, 0, 0}, 2), oldTxn, 7)
		r.wantMarker(marker(8, 0, false), nil, 1) // at 9
		first, last := store.Aborted{ProducerID: 7, FirstOffset: 1, LastOffset: 3}, store.Aborted{ProducerID: 8, FirstOffset: 7, LastOffset: 9}
		for offset, want := range map[int64][]store.Aborted{0: {first, last}, 2: {first, last}, 3: {first, last}, 4: {last}, 8: {last}, 9: {last}} {
			got, f := r.fetch(offset, true, 1<<20)
			if len(got) == 0 {
				t.Fatalf("nothing at %d", offset)
			}
			wantAborted(t, f, want...)
		}
		_, f := r.fetch(0, true, 1) // One batch.
		wantAborted(t, f)
		_, f = r.fetch(1, true, 1)
		wantAborted(t, f, first)
		if _, f = r.fetch(10, true, 1); f.Aborted == nil || len(f.Aborted) > 0 {
			t.Errorf("at the end: %+v", f.Aborted)
		}
	})
}

func TestAbortedListSorted(t *testing.T) {
	onEngines(t, func(t *testing.T, s store.Store) {
		r := newTxnRig(t, s, nil)
		for i := range int64(5) {
			r.wantProduce(r.txnBatch(producerAt{20 - i, 0, 0}, 1), oldTxn, i)
		}
		var want []store.Aborted
		for i := range int64(5) { // The last ends first.
			r.wantMarker(marker(16+i, 0, false), nil, 1)
			want = append([]store.Aborted{{ProducerID: 16 + i, FirstOffset: 4 - i, LastOffset: 5 + i}}, want...)
		}
		_, f := r.fetch(0, true, 1<<20)
		wantAborted(t, f, want...)
	})
}

// TestAbortedAboveTheLSOAreFoundAfterAReopen asks for the first time, of a log that was
// just opened, while an earlier transaction is open.
func TestAbortedAboveTheLSOAreFoundAfterAReopen(t *testing.T) {
	onEngines(t, func(t *testing.T, s store.Store) {
		r := newTxnRig(t, s, nil)
		r.wantAppend(r.batch(plain, 1), 0)
		r.wantProduce(r.txnBatch(producerAt{7, 0, 0}, 1), oldTxn, 1)
		r.wantProduce(r.txnBatch(producerAt{8, 0, 0}, 1), oldTxn, 2)
		r.wantMarker(marker(8, 0, false), nil, 1)
		must(t, r.part().Reopen(t.Context()))
		_, f := r.fetch(0, true, 1<<20)
		wantAborted(t, f)
		r.wantMarker(marker(7, 0, true), nil, 1)
		_, f = r.fetch(0, true, 1<<20)
		wantAborted(t, f, store.Aborted{ProducerID: 8, FirstOffset: 2, LastOffset: 3})
	})
}

// TestAListThatWasCutMeanwhileIsNotUsed deletes records between the read and the list.
func TestAListThatWasCutMeanwhileIsNotUsed(t *testing.T) {
	r := newTxnRig(t, mem.New(), nil)
	r.wantProduce(r.txnBatch(producerAt{8, 0, 0}, 1), oldTxn, 0)
	r.wantMarker(marker(8, 0, false), nil, 1)
	p := r.part()
	f := p.Read(t.Context(), Fetch{LeaderEpoch: NoEpoch, LastFetchedEpoch: NoEpoch, MaxBytes: 1 << 20})
	if _, err := p.DeleteBefore(t.Context(), -1); err != nil {
		t.Fatal(err)
	}
	if p.addAborted(t.Context(), p.log.Load(), Fetch{Committed: true}, &f); !errors.Is(f.Err, kerr.OffsetOutOfRange) || f.Records.Len != 0 {
		t.Errorf("%+v", f)
	}
}

func TestUncommittedListNull(t *testing.T) {
	onEngines(t, func(t *testing.T, s store.Store) {
		r := newTxnRig(t, s, nil)
		r.wantProduce(r.txnBatch(producerAt{7, 0, 0}, 2), oldTxn, 0)
		got, f := r.fetch(0, false, 1<<20)
		if bases(got) != "[0]" || f.Aborted != nil {
			t.Errorf("%v, %+v", bases(got), f.Aborted)
		}
		if got, f = r.fetch(0, true, 1<<20); len(got) != 0 || f.HighWatermark != 2 || f.LastStableOffset != 0 {
			t.Errorf("%v, %+v", bases(got), f)
		}
		r.wantMarker(marker(7, 0, false), nil, 1)
		if got, f = r.fetch(0, false, 1<<20); bases(got) != "[0 2]" || f.Aborted != nil {
			t.Errorf("%v, %+v", bases(got), f.Aborted)
		}
		if got, _ = r.fetch(0, true, 1<<20); bases(got) != "[0 2]" { // All get aborted records and markers.
			t.Errorf("%v", bases(got))
		}
	})
}

// TestSnapshotRestartRebuildsIndex has aborted transactions before and after the
// last snapshot of the producers.
func TestSnapshotRestartRebuildsIndex(t *testing.T) {
	for name, crash := range restarts {
		t.Run(name, func(t *testing.T) {
			fs := vfs.NewMem()
			set := map[string]string{"segment.bytes": "16384"}
			r := newTxnRig(t, diskStore(t, fs), set)
			var want []store.Aborted
			for i := range int64(200) {
				r.wantProduce(r.txnBatch(producerAt{7, 0, int32(i)}, 1, string(make([]byte, 200))), oldTxn, 2*i)
				r.wantMarker(marker(7, 0, i%2 == 0), nil, 1)
				if i%2 != 0 {
					want = append(want, store.Aborted{ProducerID: 7, FirstOffset: 2 * i, LastOffset: 2*i + 1})
				}
			}
			r = newTxnRig(t, diskStore(t, crash(r, fs)), set)
			var got []store.Aborted
			for offset := int64(0); offset < 400; {
				batches, f := r.fetch(offset, true, 1<<20)
				offset = batches[len(batches)-1].LastOffset() + 1
				got = append(got, f.Aborted...)
			}
			if got = slices.Compact(got); !slices.Equal(got, want) {
				t.Errorf("aborted are %+v, want %+v", got, want)
			}
		})
	}
}

// TestNextOffsetLooksAtHeadersOnly has batches of all sizes, in memory and in a file.
func TestNextOffsetLooksAtHeadersOnly(t *testing.T) {
	r := newTxnRig(t, mem.New(), nil)
	var run []byte
	for i, size := range []int{1, 10, 5000, 3, 4000, 4096, 1, 20000, 1, 1} {
		b := r.batch(plain, i+1, string(make([]byte, size)))
		b.SetBaseOffset(int64(100 * i))
		run = append(run, b...)
		reads := &countReads{data: append([]byte("before"), run...)}
		in := store.FileRecords(reads, int64(len("before")), len(run), nil)
		for name, records := range map[string]store.Records{"memory": store.BytesRecords(run), "file": in} {
			if got, err := nextOffset(&records); err != nil || got != int64(101*i+1) {
				t.Errorf("%s, %d batches: %d, %v", name, i+1, got, err)
			}
		}
		if reads.n > i+1 {
			t.Errorf("%d reads for %d batches", reads.n, i+1)
		}
	}
	many := &countReads{}
	for range 1000 {
		many.data = append(many.data, r.batch(plain, 1)...)
	}
	in := store.FileRecords(many, 0, len(many.data), nil)
	if _, err := nextOffset(&in); err != nil || many.n > len(many.data)/store.PeekBytes*5/4+2 {
		t.Errorf("%d reads for %d bytes, %v", many.n, len(many.data), err)
	}
	cut := store.BytesRecords(run[:record.HeaderSize-1])
	if _, err := nextOffset(&cut); err == nil {
		t.Error("half a header is no header")
	}
}

type countReads struct {
	data []byte
	n    int
}

func (c *countReads) Fd() (uintptr, bool) { return 0, false }

func (c *countReads) ReadAt(b []byte, at int64) (int, error) {
	c.n++
	if n := copy(b, c.data[at:]); n < len(b) {
		return n, fmt.Errorf("read %d of %d", n, len(b))
	}
	return len(b), nil
}

// between does something when someone looks for the bounds of a log.
type between struct {
	store.Store
	do func()
}

func (s *between) Open(ctx context.Context, tp store.TopicPartition, epoch int32, cfg store.LogConfig) (store.Log, error) {
	l, err := s.Store.Open(ctx, tp, epoch, cfg)
	return &betweenLog{l, s}, err
}

type betweenLog struct {
	store.Log
	s *between
}

func (l *betweenLog) Bounds() (start, end int64) {
	if do := l.s.do; do != nil {
		l.s.do = nil
		do()
	}
	return l.Log.Bounds()
}

// TestAReaderOfTheLogBefore reads from a log that is opened again meanwhile: it must
// not be told of a transaction's end of which that log does not know.
func TestAReaderOfTheLogBefore(t *testing.T) {
	s := &between{Store: mem.New()}
	r := newTxnRig(t, s, nil)
	r.wantAppend(r.batch(plain, 1), 0)
	r.fetch(0, true, 1<<20)
	r.wantProduce(r.txnBatch(producerAt{7, 0, 0}, 1), oldTxn, 1)
	s.do = func() {
		if err := r.part().Reopen(t.Context()); err != nil {
			t.Error(err)
		}
		r.wantMarker(marker(7, 0, false), nil, 1)
		r.wantStable(3)
	}
	batches, f := r.fetch(0, true, 1<<20)
	if len(batches) != 1 {
		t.Errorf("read %v, aborted are %v", bases(batches), f.Aborted)
	}
}

// TestOffsetsOfAnAnswerAreInOrder has records come while a reader looks at the offsets one by one.
func TestOffsetsOfAnAnswerAreInOrder(t *testing.T) {
	s := &between{Store: mem.New()}
	r := newTxnRig(t, s, nil)
	r.wantAppend(r.batch(plain, 1), 0)
	s.do = func() { r.wantAppend(r.batch(plain, 1), 1) }
	if _, f := r.fetch(0, true, 1<<20); f.LogStartOffset > f.LastStableOffset || f.LastStableOffset > f.HighWatermark {
		t.Errorf("from %d, stable to %d, shown to %d", f.LogStartOffset, f.LastStableOffset, f.HighWatermark)
	}
}
