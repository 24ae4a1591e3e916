package storetest

import (
	"fmt"
	"math/rand/v2"
	"sort"
	"strings"
	"testing"
	"time"

	"muster/internal/assert"
	"muster/internal/record"
	"muster/internal/store"
)

// Metamorphic does the same random operations to two stores, and demands that
// they show the same records, save for what the contract leaves free: offsets
// are translated by the records' identity, one engine may have dropped more
// from the start of its log than the other, and either may still have records
// that compaction may drop. The seed decides everything; a failure logs it with
// all steps.
func Metamorphic(t *testing.T, openA, openB func(t *testing.T) Harness, seed uint64) {
	t.Logf("seed %d", seed)
	w := &twins{
		T: t, rng: rand.New(rand.NewPCG(seed, 0)),
		both: [2]*fixture{newFixture(t, openA(t)), newFixture(t, openB(t))},
	}
	for i := range 150 {
		w.step()
		// Unpacking everything after every step would take most of the time.
		if i%5 == 0 {
			w.compare()
		}
	}
	w.compare()
}

// twins are two engines with the same history. The records of both have the
// same index in sent, but offsets of their own.
type twins struct {
	*testing.T
	rng  *rand.Rand
	both [2]*fixture
	// droppable says of each record whether a compaction so far may have
	// dropped it.
	droppable []bool
}

func (w *twins) sent() []sent { return w.both[0].sent }

// offset returns the offset of a record in an engine; the index after the last
// record stands for the log end offset.
func (w *twins) offset(f *fixture, index int) int64 {
	if index == len(f.sent) {
		return f.end()
	}
	return f.sent[index].Offset
}

// anyIndex chooses a record, or the end of the log.
func (w *twins) anyIndex() int { return w.rng.IntN(len(w.sent()) + 1) }

func (w *twins) step() {
	switch n := w.rng.IntN(100); {
	case n < 45:
		w.append()
	case n < 60:
		w.read()
	case n < 68:
		w.search()
	case n < 73:
		w.trim()
	case n < 78:
		w.retain()
	case n < 86:
		w.compact()
	case n < 91:
		w.reopen()
	case n < 96:
		w.changeOwner()
	default:
		w.Log("flush")
		for _, f := range w.both {
			f.flush()
		}
	}
}

func (w *twins) append() {
	tmpl := record.PlainTemplate()
	if w.rng.IntN(8) == 0 {
		tmpl.Codec = record.Snappy // The cheapest to unpack again and again.
	}
	var recs []record.Record
	for range 1 + w.rng.IntN(5) {
		r := record.Record{Timestamp: w.both[0].clock + w.rng.Int64N(5000) - 1000}
		if key := w.rng.IntN(12); key < 10 {
			r.Key = []byte(strings.Repeat("k", key))
		}
		if w.rng.IntN(6) > 0 {
			r.Value = []byte(strings.Repeat("v", w.rng.IntN(150)))
		}
		r.Headers = []record.Header{{Key: "id", Value: fmt.Append(nil, len(w.sent())+len(recs))}}
		recs = append(recs, r)
	}
	w.Logf("append %d records", len(recs))
	for _, f := range w.both {
		f.clock += 100
		f.appendBatch(tmpl, recs...)
	}
	for range recs {
		w.droppable = append(w.droppable, false)
	}
}

// read reads between two offsets in steps of any size. What it yields must
// agree with reading everything.
func (w *twins) read() {
	i, j, step := w.anyIndex(), w.anyIndex(), 1+w.rng.IntN(2000)
	w.Logf("read from %d to %d in steps of %d", i, j, step)
	for _, f := range w.both {
		start, _ := f.log.Bounds()
		at, next := w.offset(f, i), w.offset(f, j)
		if at < start {
			f.wantErr(f.readErr(at), store.ErrOffsetOutOfRange)
			continue
		}
		var want []sent
		for _, s := range f.content() {
			if s.Offset >= at && s.Offset < next {
				want = append(want, s)
			}
		}
		got := f.readRange(at, next, step)
		// A batch that reaches the bound is not returned.
		if len(got) < len(want) && len(want)-len(got) < 5 {
			want = want[:len(got)]
		}
		f.equal(got, want)
	}
}

func (w *twins) search() {
	ts := w.both[0].clock - 1000 - w.rng.Int64N(100*int64(1+len(w.sent())/3))
	w.Logf("search for timestamp %d", ts)
	for _, f := range w.both {
		recs := f.content()
		want, found := firstAtLeast(recs, ts)
		got, ok, err := f.log.OffsetForTimestamp(f.ctx, ts)
		f.must(err)
		assert.MustTrue(f, ok == found && got == want, "timestamp %d: found %+v %v, want %+v %v", ts, got, ok, want, found)
		top := int64(record.NoTimestamp)
		for _, r := range recs {
			top = max(top, r.Timestamp)
		}
		want, found = firstAtLeast(recs, top)
		got, ok, err = f.log.MaxTimestamp(f.ctx)
		f.must(err)
		assert.MustTrue(f, ok == found && (!ok || got == want), "largest timestamp: found %+v %v, want %+v %v", got, ok, want, found)
	}
}

func (w *twins) trim() {
	// Mostly a little, sometimes everything.
	i := min(w.anyIndex(), w.anyIndex(), w.anyIndex())
	if w.rng.IntN(8) == 0 {
		i = len(w.sent())
	}
	w.Logf("trim to %d", i)
	for _, f := range w.both {
		before, _ := f.log.Bounds()
		f.must(f.log.Trim(f.ctx, w.offset(f, i)))
		if start, _ := f.log.Bounds(); start != max(before, w.offset(f, i)) {
			f.Fatalf("log starts at %d after trim to %d, did at %d", start, w.offset(f, i), before)
		}
		f.wantErr(f.log.Trim(f.ctx, f.end()+1), store.ErrOffsetOutOfRange)
	}
}

func (w *twins) retain() {
	i := w.anyIndex()
	age, size := time.Duration(-1), int64(-1)
	if w.rng.IntN(2) == 0 {
		age = time.Duration(w.rng.IntN(10_000)) * time.Millisecond
	}
	if w.rng.IntN(2) == 0 {
		size = w.rng.Int64N(20_000)
	}
	w.Logf("retain %v, %d bytes, all from %d on", age, size, i)
	for _, f := range w.both {
		before, _ := f.log.Bounds()
		bytes, held := f.log.Size(), f.content()
		next := w.offset(f, i)
		f.must(f.log.Retain(f.ctx, store.Retention{Now: time.UnixMilli(f.clock), MaxAge: age, MaxBytes: size, NextOffset: next}))
		start, _ := f.log.Bounds()
		assert.MustTrue(f, start <= max(before, next), "log starts at %d, did at %d, and was to keep all from %d on", start, before, next)
		large := size >= 0 && f.log.Size() >= min(size, bytes)
		for _, s := range held {
			if old := age >= 0 && f.clock-s.Timestamp > age.Milliseconds(); s.Offset < start && !old && !large {
				f.Fatalf("%v is gone: the log had %d bytes, and has %d", s, bytes, f.log.Size())
			}
		}
	}
}

func (w *twins) compact() {
	i := w.anyIndex()
	keep := time.Duration(w.rng.IntN(2)) * time.Hour
	w.Logf("compact up to %d, keep tombstones for %v", i, keep)
	newest := map[string]int{}
	for n, s := range w.sent()[:i] {
		if s.Key != nil {
			newest[string(s.Key)] = n
		}
	}
	for n, s := range w.sent()[:i] {
		if s.Key == nil || s.Value == nil || newest[string(s.Key)] > n {
			w.droppable[n] = true
		}
	}
	for _, f := range w.both {
		f.compactWith(store.Compaction{Now: time.UnixMilli(f.clock), NextOffset: w.offset(f, i), DeleteRetention: keep})
	}
}

func (w *twins) reopen() {
	w.Log("reopen the stores")
	for _, f := range w.both {
		if f.h.Reopen != nil {
			f.reopen()
		}
	}
}

// changeOwner opens the logs again, sometimes under the same epoch.
func (w *twins) changeOwner() {
	more := int32(w.rng.IntN(3))
	w.Logf("open again, epoch + %d", more)
	want := store.ErrFenced
	if more == 0 {
		want = store.ErrClosed
	}
	for _, f := range w.both {
		old := f.log
		f.setEpoch(f.epoch + more)
		_, err := old.Append(f.ctx, mustBuild(f.T, "k", "refused"))
		f.wantErr(err, want)
		_, err = f.h.Store.Open(f.ctx, f.tp, f.epoch-1, f.h.Config)
		f.wantErr(err, store.ErrFenced)
	}
}

// compare demands that both engines hold all records that none may have
// dropped, in order and with the same content.
func (w *twins) compare() {
	w.Helper()
	first := 0
	var held [2]map[int]bool
	for i, f := range w.both {
		start, _ := f.log.Bounds()
		first = max(first, sort.Search(len(f.sent), func(n int) bool { return f.sent[n].Offset >= start }))
		held[i] = w.indexes(f)
	}
	for n := first; n < len(w.sent()); n++ {
		if !w.droppable[n] && (!held[0][n] || !held[1][n]) {
			w.Fatalf("record %d: held by the first engine %v, by the second %v", n, held[0][n], held[1][n])
		}
	}
}

// indexes returns which records an engine holds.
func (w *twins) indexes(f *fixture) map[int]bool {
	w.Helper()
	f.verifyBounds()
	held := map[int]bool{}
	content := f.content()
	for _, s := range content {
		n := sort.Search(len(f.sent), func(n int) bool { return f.sent[n].Offset >= s.Offset })
		assert.MustTrue(w, n != len(f.sent) && same(f.sent[n], s), "%v was never appended", s)
		held[n] = true
	}
	f.verifyEpochs(content)
	return held
}
