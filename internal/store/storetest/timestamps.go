package storetest

import (
	"math"
	"math/rand/v2"

	"muster/internal/assert"
	"muster/internal/record"
	"muster/internal/store"
)

var timestampTests = []test{
	{"SearchByTimestampFindsTheFirstRecord", testTimestamps},
	{"SearchByTimestampInAnEmptyLogFindsNothing", testTimestampsEmpty},
	{"SearchByTimestampAfterTrimFindsWhatRemains", testTimestampsTrim},
	{"SearchByTimestampAfterReopening", testTimestampsReopen},
	{"SearchByTimestampAfterCompactionFindsWhatRemains", testTimestampsCompact},
	{"SearchByTimestampSkipsRecordsWithoutTimestamp", testNoTimestamps},
	{"TheLargestTimestampIsTheFirstOfEquals", testMaxTimestampFirst},
}

// verifyTimestamps compares searches with the records that the log holds.
func (f *fixture) verifyTimestamps() {
	f.Helper()
	recs := f.content()
	times := []int64{math.MinInt64, 0, 1, math.MaxInt64}
	for _, r := range recs {
		times = append(times, r.Timestamp-1, r.Timestamp, r.Timestamp+1)
	}
	for _, ts := range times {
		got, ok, err := f.log.OffsetForTimestamp(f.ctx, ts)
		f.must(err)
		want, found := firstAtLeast(recs, ts)
		assert.MustTrue(f, ok == found && got == want, "timestamp %d: found %+v %v, want %+v %v", ts, got, ok, want, found)
	}
	top := int64(record.NoTimestamp)
	for _, r := range recs {
		top = max(top, r.Timestamp)
	}
	want, found := firstAtLeast(recs, top)
	if top == record.NoTimestamp {
		want, found = store.TimestampOffset{Timestamp: record.NoTimestamp}, false
	}
	got, ok, err := f.log.MaxTimestamp(f.ctx)
	f.must(err)
	assert.MustTrue(f, ok == found && (!ok || got == want), "largest timestamp: found %+v %v, want %+v %v", got, ok, want, found)
}

func firstAtLeast(recs []sent, ts int64) (store.TimestampOffset, bool) {
	for _, r := range recs {
		if r.Timestamp >= ts {
			return store.TimestampOffset{Offset: r.Offset, Timestamp: r.Timestamp, LeaderEpoch: r.epoch}, true
		}
	}
	return store.TimestampOffset{}, false
}

// appendOutOfOrder appends records whose timestamps go up and down, within
// batches and between them.
func (f *fixture) appendOutOfOrder(batches int, seed uint64) {
	f.Helper()
	rng := rand.New(rand.NewPCG(seed, 0))
	for i := range batches {
		var recs []record.Record
		for range 1 + rng.IntN(4) {
			ts := 1_000_000 + int64(i*50) + rng.Int64N(1000)
			recs = append(recs, recAt(ts, string(rune('a'+rng.IntN(10))), "some value of some length"))
		}
		f.append(recs...)
	}
}

func testTimestamps(f *fixture) {
	f.appendMany(10)
	f.verifyTimestamps()
	f.appendOutOfOrder(40, 1)
	f.setEpoch(f.epoch + 1)
	f.appendOutOfOrder(20, 2)
	f.verifyTimestamps()
}

func testTimestampsEmpty(f *fixture) {
	f.verifyTimestamps()
	f.appendOutOfOrder(20, 1)
	f.trim(f.end())
	f.verifyTimestamps()
	f.appendOutOfOrder(3, 2)
	f.verifyTimestamps()
}

func testTimestampsTrim(f *fixture) {
	f.appendOutOfOrder(max(10, many(40)), 3)
	for i := 0; i < len(f.sent); i += 7 {
		f.trim(f.sent[i].Offset)
		f.verifyTimestamps()
	}
}

func testTimestampsReopen(f *fixture) {
	f.appendOutOfOrder(40, 4)
	f.trim(f.sent[10].Offset)
	f.reopen()
	f.verifyTimestamps()
	f.appendOutOfOrder(10, 5)
	f.verifyTimestamps()
}

func testTimestampsCompact(f *fixture) {
	f.appendOutOfOrder(60, 6)
	f.compact(f.end(), 0)
	f.verifyTimestamps()
	f.must(f.log.Trim(f.ctx, f.sent[50].Offset))
	f.verifyTimestamps()
}

func testNoTimestamps(f *fixture) {
	none := func() record.Record { return recAt(record.NoTimestamp, "k", "v") }
	f.append(none())
	f.verifyTimestamps()
	f.append(none(), recAt(5, "k", "v"), none())
	f.append(none())
	f.verifyTimestamps()
}

func testMaxTimestampFirst(f *fixture) {
	for range 30 {
		f.append(recAt(10, "a", "1"), recAt(77, "a", "1"), recAt(3, "a", "1"), recAt(77, "a", "2"))
	}
	f.verifyTimestamps()
	f.trim(f.sent[2].Offset)
	f.verifyTimestamps()
}
