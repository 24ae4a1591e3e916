package storetest

import (
	"math"
	"strings"

	"muster/internal/assert"
	"muster/internal/record"
	"muster/internal/store"
)

var readTests = []test{
	{"ReadFromAnyOffsetReturnsTheRestOfTheLog", testReadFromAnyOffset},
	{"TheFirstBatchHoldsTheOffset", testFirstBatchHoldsOffset},
	{"NextOffsetBoundsWhatIsRead", testNextOffset},
	{"MaxBytesBoundsWhatIsRead", testMaxBytes},
	{"MinOneReturnsTheFirstBatchWhateverItsSize", testMinOne},
	{"SmallStepsYieldEachRecordOnce", testSmallSteps},
	{"WhatWasReadStaysReadableUntilReleased", testReadableUntilReleased},
	{"ReadsWorkAfterReopening", testReadsAfterReopen},
}

// appendVaried appends batches of one to five records, small and large, some of
// them packed.
func (f *fixture) appendVaried() {
	f.Helper()
	for i := range 25 {
		tmpl := record.PlainTemplate()
		if i%5 == 0 {
			tmpl.Codec = record.Snappy
		}
		var recs []record.Record
		for j := range 1 + i%5 {
			recs = append(recs, rec(strings.Repeat("k", 1+j), strings.Repeat("v", 1+(i*37)%400)))
		}
		f.appendBatch(tmpl, recs...)
	}
}

func testReadFromAnyOffset(f *fixture) {
	f.appendVaried()
	_, end := f.log.Bounds()
	for _, s := range f.sent {
		f.equal(f.readRange(s.Offset, end, 1000), f.from(s.Offset))
	}
}

func testFirstBatchHoldsOffset(f *fixture) {
	f.appendVaried()
	_, end := f.log.Bounds()
	for _, s := range f.sent {
		got := f.read(store.ReadRequest{Offset: s.Offset, NextOffset: end, MaxBytes: 1, MinOne: true})
		if len(got) != 1 || got[0].BaseOffset() > s.Offset || got[0].LastOffset() < s.Offset {
			f.Fatalf("%d batches read at offset %d, first %v", len(got), s.Offset, got)
		}
	}
}

func testNextOffset(f *fixture) {
	f.appendVaried()
	start, end := f.log.Bounds()
	for i, s := range f.sent {
		// f.read checks that no batch reaches the bound. What there is must be
		// what was sent, from the start on without omission.
		got := f.readRange(start, s.Offset, 1<<20)
		assert.MustTrue(f, len(got) <= i, "%d records before the one at %d, of %d", len(got), s.Offset, i)
		f.equal(got, f.sent[:len(got)])
	}
	for _, next := range []int64{end, end + 1, math.MaxInt64} {
		f.equal(f.readRange(start, next, 1<<20), f.sent)
	}
	// At the base of a batch, everything before it is there.
	for i := 0; i < len(f.sent); i++ {
		b := f.read(store.ReadRequest{Offset: f.sent[i].Offset, NextOffset: end, MaxBytes: 1, MinOne: true})[0]
		if b.BaseOffset() == f.sent[i].Offset {
			f.equal(f.readRange(start, b.BaseOffset(), 1<<20), f.sent[:i])
		}
	}
	for _, next := range []int64{start, start - 1, math.MinInt64} {
		if got := f.read(store.ReadRequest{Offset: start, NextOffset: next, MaxBytes: 1 << 20, MinOne: true}); len(got) != 0 {
			f.Fatalf("%d batches below %d from offset %d", len(got), next, start)
		}
	}
}

func testMaxBytes(f *fixture) {
	f.appendVaried()
	_, end := f.log.Bounds()
	for _, s := range f.sent {
		for _, limit := range []int{-1, 0, 1, 60, 61, 100, 250, 500, 501, 1000, 5000, 1 << 20} {
			r, err := f.log.Read(f.ctx, store.ReadRequest{Offset: s.Offset, NextOffset: end, MaxBytes: limit})
			f.must(err)
			assert.MustTrue(f, r.Len <= max(limit, 0), "%d bytes read, %d allowed", r.Len, limit)
			got := f.batchesOf(r)
			f.checkNext(r, got)
			for _, b := range got {
				if b.LastOffset() < s.Offset {
					f.Fatalf("batch %d to %d read at %d", b.BaseOffset(), b.LastOffset(), s.Offset)
				}
			}
		}
		if got := f.read(store.ReadRequest{Offset: s.Offset, NextOffset: end, MaxBytes: 1 << 20}); len(got) == 0 {
			f.Fatalf("nothing read at %d with room for all", s.Offset)
		}
	}
}

func testMinOne(f *fixture) {
	f.appendVaried()
	f.append(rec("large", strings.Repeat("l", 10_000)))
	_, end := f.log.Bounds()
	for _, s := range f.sent {
		for _, limit := range []int{-1, 0, 1, 61, 300, 2000} {
			r, err := f.log.Read(f.ctx, store.ReadRequest{Offset: s.Offset, NextOffset: end, MaxBytes: limit, MinOne: true})
			f.must(err)
			n := r.Len
			got := f.batchesOf(r)
			f.checkNext(r, got)
			assert.MustTrue(f, len(got) != 0 && (len(got) <= 1 || n <= limit), "%d batches, %d bytes read at %d, %d allowed", len(got), n, s.Offset, limit)
		}
	}
}

// checkNext checks where a run is said to end.
func (f *fixture) checkNext(r store.Records, got []record.Batch) {
	f.Helper()
	if len(got) == 0 || r.Next == 0 {
		return
	}
	last := got[len(got)-1].LastOffset()
	assert.MustTrue(f, r.Next > last, "a run up to %d is said to end before %d", last, r.Next)
	if between := f.read(store.ReadRequest{Offset: last + 1, NextOffset: r.Next, MaxBytes: 1, MinOne: true}); len(between) > 0 {
		f.Fatalf("a run up to %d is said to end before %d, and %d is between", last, r.Next, between[0].BaseOffset())
	}
}

func testSmallSteps(f *fixture) {
	f.appendVaried()
	start, end := f.log.Bounds()
	for _, step := range []int{1, 61, 100, 333, 1000, 4096, 1 << 20} {
		f.equal(f.readRange(start, end, step), f.sent)
	}
}

func testReadableUntilReleased(f *fixture) {
	f.appendMany(10)
	start, end := f.log.Bounds()
	request := store.ReadRequest{Offset: start, NextOffset: end, MaxBytes: 1 << 20, MinOne: true}
	var runs []store.Records
	for range 3 {
		r, err := f.log.Read(f.ctx, request)
		f.must(err)
		runs = append(runs, r)
	}
	check := func(r store.Records) {
		f.Helper()
		var got []sent
		for _, b := range f.batchesOf(r) {
			got = append(got, f.recordsOf(b)...)
		}
		f.equal(got, f.sent[:len(got)])
		assert.MustTrue(f, len(got) != 0, "nothing was read")
	}
	f.must(f.log.Trim(f.ctx, end))
	check(runs[0])
	f.must(f.h.Store.Delete(f.ctx, f.tp))
	check(runs[1])
	f.must(f.h.Store.Close())
	check(runs[2])
}

func testReadsAfterReopen(f *fixture) {
	f.appendVaried()
	f.reopen()
	f.verify()
	_, end := f.log.Bounds()
	for _, s := range f.sent {
		f.equal(f.readRange(s.Offset, end, 500), f.from(s.Offset))
	}
}
