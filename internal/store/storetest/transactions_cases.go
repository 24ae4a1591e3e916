package storetest

import (
	"fmt"
	"strings"
	"time"

	"muster/internal/assert"
	"muster/internal/record"
	"muster/internal/store"
)

func testAbortedRange(f *fixture) {
	o := newOwner(f)
	o.write(-1, false, rec("before", "it"))
	first := o.write(1, true, rec("a", "1"), rec("b", "2")).BaseOffset
	o.write(-1, false, rec("between", "them"))
	o.write(1, true, rec("c", "3"))
	last := o.finish(1, false, false).LastOffset
	o.write(1, true, rec("a", "committed"))
	o.finish(1, true, false)
	want := store.Aborted{ProducerID: 1, FirstOffset: first, LastOffset: last}
	for range 2 {
		o.wantAborted(0, o.end(), want)
		o.wantAborted(last, last+1, want)
		o.wantAborted(0, first+1, want)
		o.wantAborted(0, first)
		o.wantAborted(last+1, o.end())
		o.check()
		o.reopenAll()
	}
}

func testAbortedSorted(f *fixture) {
	o := newOwner(f)
	var want []store.Aborted
	for id := int64(1); id <= 3; id++ {
		want = append(want, store.Aborted{ProducerID: id, FirstOffset: o.write(id, true, rec("k", "v")).BaseOffset})
	}
	for i := len(want) - 1; i >= 0; i-- {
		want[i].LastOffset = o.finish(want[i].ProducerID, false, true).LastOffset
	}
	o.wantAborted(0, o.end(), want...)
	o.must(o.log.SaveProducers(o.ctx, o.producers.List(), o.end()))
	o.reopenAll()
	o.wantAborted(0, o.end(), want...)
	o.wantAborted(want[1].LastOffset, o.end(), want[:2]...)
}

func testMarkerAlone(f *fixture) {
	o := newOwner(f)
	o.finish(5, false, false)
	o.write(5, true, rec("k", "v"))
	o.finish(5, true, false)
	o.finish(5, false, false)
	o.wantAborted(0, o.end())
	o.reopenAll()
	o.wantAborted(0, o.end())
	if p := o.producers[5]; p.CoordinatorEpoch != 6 {
		o.Errorf("producer %+v", p)
	}
}

func testOpenTransactions(f *fixture) {
	o := newOwner(f)
	o.write(1, true, rec("k", "v"))
	o.finish(1, true, false)
	open := o.write(1, true, rec("k", "open")).BaseOffset
	o.write(2, true, rec("k", "open too"))
	for range 2 {
		o.reopenAll()
		if p := o.producers[1]; p.TxnFirst != open || p.CoordinatorEpoch != 6 {
			o.Fatalf("producer %+v, its transaction began at %d", p, open)
		}
		o.must(o.log.SaveProducers(o.ctx, o.producers.List(), o.end()))
	}
	// A trim takes the records, not the transaction.
	o.must(o.log.Trim(o.ctx, o.end()))
	o.reopenAll()
	last := o.finish(1, false, true).LastOffset
	o.reopenAll()
	o.wantAborted(0, o.end(), store.Aborted{ProducerID: 1, FirstOffset: open, LastOffset: last})
}

func testAbortedTrimmed(f *fixture) {
	o := newOwner(f)
	for range 5 {
		o.write(1, true, rec("k", strings.Repeat("v", 300)))
		o.finish(1, false, true)
		o.write(-1, false, rec("k", strings.Repeat("v", 300)))
	}
	for i, a := range o.aborted {
		o.must(o.log.Trim(o.ctx, a.LastOffset))
		o.wantAborted(0, o.end(), o.aborted[i:]...)
		o.reopenAll()
		o.wantAborted(0, o.end(), o.aborted[i:]...)
		o.must(o.log.Trim(o.ctx, a.LastOffset+1))
		o.wantAborted(0, o.end(), o.aborted[i+1:]...)
		o.reopenAll()
		o.wantAborted(0, o.end(), o.aborted[i+1:]...)
	}
	o.write(1, true, rec("k", "v"))
	o.finish(1, false, true)
	o.clock += time.Hour.Milliseconds()
	o.retain(time.Minute, -1, o.end())
	o.check()
	start, _ := o.log.Bounds()
	for _, a := range o.find(0, o.end()) {
		assert.True(o, a.LastOffset >= start, "%+v is kept in a log that starts at %d", a, start)
	}
	o.reopenAll()
	o.check()
}

// padding appends what an engine may leave alone at the end of a log.
func (o *owner) padding() {
	o.Helper()
	o.needDrops()
	for n := int64(0); n <= o.h.Slack; n += 500 {
		o.write(-1, false, rec(fmt.Sprintf("filler %d", n), strings.Repeat("f", 500)))
	}
}

func testCompactAborted(f *fixture) {
	o := newOwner(f)
	o.write(1, true, rec("a", "committed a"), rec("b", "old b"))
	o.finish(1, true, false)
	o.write(1, true, rec("a", "aborted a"), rec("c", "aborted c"))
	o.write(2, true, rec("b", "new b"))
	o.finish(1, false, false)
	o.finish(2, true, false)
	o.write(1, true, rec("d", "d"))
	o.finish(1, true, false)
	o.padding()
	o.clean(time.Hour)
	for value, want := range map[string]bool{
		"committed a": true, "old b": false, "aborted a": false, "aborted c": false, "new b": true, "d": true,
	} {
		if o.holds(value) != want {
			o.Errorf("%q: in the log %v, want %v", value, !want, want)
		}
	}
	o.check()
	o.reopenAll()
	o.check()
}

// control returns the offsets of the control batches of a producer.
func (o *owner) control(id int64) (at []int64) {
	start, end := o.log.Bounds()
	for _, b := range o.batches(start, end) {
		if b.Control() && b.ProducerID() == id {
			at = append(at, b.BaseOffset())
		}
	}
	return at
}

func testCompactKeepsMarkers(f *fixture) {
	o := newOwner(f)
	o.write(1, true, rec("a", "stays"))
	committed := o.finish(1, true, false).LastOffset
	o.write(1, true, rec("b", "aborted"))
	aborted := o.finish(1, false, false).LastOffset
	o.write(1, true, rec("e", "the producer's last"))
	last := o.finish(1, true, false).LastOffset
	want := func(entries int, markers ...int64) {
		o.Helper()
		if got := o.control(1); fmt.Sprint(got) != fmt.Sprint(markers) {
			o.Fatalf("markers at %v, want %v", got, markers)
		}
		if got := o.find(0, o.end()); len(got) != entries {
			o.Fatalf("aborted %v, want %d", got, entries)
		}
		o.check()
		o.reopenAll()
		o.check()
	}
	o.padding()
	o.clean(time.Minute)
	want(1, committed, aborted, last)
	// The clock runs from the pass that took the records.
	o.clock += 50_000
	o.write(-1, false, rec("x", "dirt"))
	o.padding()
	o.clean(2 * time.Minute)
	want(1, committed, aborted, last)
	o.clock += 2 * time.Minute.Milliseconds()
	o.write(-1, false, rec("x", "dirt"))
	o.padding()
	o.clean(time.Minute)
	want(0, committed, last)
	// The record of the first is superseded, and its marker goes one pass later.
	o.write(-1, false, rec("a", "newer"))
	o.padding()
	o.clean(time.Minute)
	want(0, committed, last)
	o.write(-1, false, rec("x", "more dirt"))
	o.padding()
	o.clean(time.Minute)
	want(0, last)
}

func testCompactKeepsLast(f *fixture) {
	o := newOwner(f)
	o.write(1, true, rec("a", "aborted"), rec("b", "too"))
	o.finish(1, false, false)
	// What is emptied had the largest timestamp, which then is no one's.
	late := o.clock + time.Hour.Milliseconds()
	o.write(2, false, recAt(late, "a", "superseded"), recAt(late, "b", "too"))
	o.write(-1, false, rec("a", "newer"), rec("b", "newer"))
	o.padding()
	for range 3 {
		o.clean(0)
		start, end := o.log.Bounds()
		left := map[int64]record.Batch{}
		for _, b := range o.batches(start, end) {
			if b.ProducerID() >= 0 && !b.Control() {
				left[b.ProducerID()] = b
			}
		}
		for id := int64(1); id <= 2; id++ {
			b := left[id]
			if b == nil || b.Count() != 0 || b.LastOffsetDelta() != 1 || b.BaseSequence() != 0 || b.Transactional() != (id == 1) {
				o.Fatalf("of producer %d the log has %x", id, b)
			}
		}
		assert.MustEqual(o, len(o.control(1)), 1, "the marker of what was emptied is gone")
		o.check()
		hit, ok, err := o.log.MaxTimestamp(o.ctx)
		o.must(err)
		if want, found := o.largest(); ok != found || hit.Timestamp != want {
			o.Fatalf("largest timestamp %+v %v, want %d", hit, ok, want)
		}
		o.reopenAll()
		o.clock += 60_000
		o.write(-1, false, rec("x", "dirt"))
		o.padding()
	}
}

func (o *owner) largest() (ts int64, found bool) {
	for _, r := range o.content() {
		ts, found = max(ts, r.Timestamp), true
	}
	return ts, found
}

func testCompactKeepsLastMarker(f *fixture) {
	o := newOwner(f)
	o.write(1, true, rec("a", "aborted"))
	o.finish(1, false, true)
	o.write(1, true, rec("b", "aborted"))
	last := o.finish(1, false, true).LastOffset
	for range 3 {
		o.padding()
		o.clean(0)
		o.clock += 60_000
		o.reopenAll()
		o.check()
	}
	if got := o.control(1); len(got) != 1 || got[0] != last {
		o.Fatalf("markers at %v, want the last, %d", got, last)
	}
}

// Coordinators write batches without sequences, so that nothing but its markers tells
// of a producer, which may end transactions for as long as it lives.
func testCompactDropsMarkers(f *fixture) {
	o := newOwner(f)
	var last int64
	for range 4 {
		for range 5 {
			t := record.PlainTemplate()
			t.ProducerID, t.ProducerEpoch, t.Transactional = 3, 0, true
			offset := o.appendRaw(o.build(t, []record.Record{rec("group", "offset")})).BaseOffset
			o.pending[3] = append(o.pending[3], offset)
			last = o.finish(3, true, false).LastOffset
		}
		o.padding()
		o.clean(0)
		o.clock += 60_000
		o.reopenAll()
		o.check()
	}
	// Those of the last pass, and one whose record was there when it began.
	if got := o.control(3); len(got) > 6 || got[len(got)-1] != last {
		o.Fatalf("markers at %v", got)
	}
	for range 3 {
		o.write(-1, false, rec("x", "dirt"))
		o.padding()
		o.clean(0)
		o.clock += 60_000
		o.reopenAll()
		o.check()
	}
	if got := o.control(3); len(got) == 0 || got[len(got)-1] != last {
		o.Fatalf("markers at %v, the last was at %d", got, last)
	}
}

// A fetch must not look at all of them, whatever the engine keeps.
func testManyAborted(f *fixture) {
	o := newOwner(f)
	long := o.write(99, true, rec("long", "running")).BaseOffset
	for i := range many(400) {
		id := int64(1 + i%7)
		o.write(id, true, rec("k", "v"))
		o.finish(id, i%4 == 3, false)
	}
	o.finish(99, false, false)
	o.reopenAll()
	for _, a := range o.aborted {
		for _, b := range o.find(a.FirstOffset, a.LastOffset) {
			assert.MustTrue(o, b.FirstOffset < a.LastOffset && b.LastOffset >= a.FirstOffset, "%+v is outside of %+v", b, a)
		}
		if got := o.find(a.FirstOffset, a.FirstOffset+1); a.FirstOffset > long && len(got) != 2 || got[0].FirstOffset != long {
			o.Fatalf("aborted at %d: %+v", a.FirstOffset, got)
		}
	}
	o.check()
}
