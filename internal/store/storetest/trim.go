package storetest

import (
	"math"

	"muster/internal/store"
)

var trimTests = []test{
	{"TrimMovesTheStartToAnyOffset", testTrimAnywhere},
	{"TrimBackwardsChangesNothing", testTrimBackwards},
	{"TrimBeyondTheEndIsRefused", testTrimBeyondEnd},
	{"TrimToTheEndEmptiesTheLog", testTrimToEnd},
	{"TrimOfAnEmptyLogChangesNothing", testTrimEmpty},
	{"TrimSurvivesReopening", testTrimSurvivesReopen},
	{"OffsetsAreNotReusedAfterTrimToTheEndAndReopening", testTrimToEndReopen},
	{"TrimGivesRoomBack", testTrimGivesRoom},
}

func (f *fixture) trim(to int64) {
	f.Helper()
	f.must(f.log.Trim(f.ctx, to))
	if start, _ := f.log.Bounds(); start != to {
		f.Fatalf("log starts at %d after trim to %d", start, to)
	}
	f.verify()
}

func testTrimAnywhere(f *fixture) {
	f.appendVaried()
	for i := 0; i < len(f.sent); i += 3 {
		f.trim(f.sent[i].Offset)
	}
	f.appendVaried()
	f.verify()
}

func testTrimBackwards(f *fixture) {
	f.appendMany(10)
	at := f.sent[14].Offset
	f.trim(at)
	for _, to := range []int64{at, at - 1, 0, -1, math.MinInt64} {
		f.must(f.log.Trim(f.ctx, to))
		if start, _ := f.log.Bounds(); start != at {
			f.Fatalf("trim to %d moved the start from %d to %d", to, at, start)
		}
	}
	f.verify()
}

func testTrimBeyondEnd(f *fixture) {
	f.appendMany(5)
	start, end := f.log.Bounds()
	for _, to := range []int64{end + 1, math.MaxInt64} {
		f.wantErr(f.log.Trim(f.ctx, to), store.ErrOffsetOutOfRange)
	}
	f.verify()
	if now, _ := f.log.Bounds(); now != start {
		f.Errorf("log starts at %d, did at %d", now, start)
	}
}

func testTrimToEnd(f *fixture) {
	for range 3 {
		f.appendMany(12)
		_, end := f.log.Bounds()
		f.trim(end)
		f.appendMany(1)
		f.verify()
	}
}

func testTrimEmpty(f *fixture) {
	_, end := f.log.Bounds()
	f.must(f.log.Trim(f.ctx, end))
	f.verify()
	f.wantErr(f.log.Trim(f.ctx, end+1), store.ErrOffsetOutOfRange)
	f.appendMany(1)
	f.verify()
}

func testTrimSurvivesReopen(f *fixture) {
	f.appendVaried()
	for _, i := range []int{1, 20, 40} {
		f.trim(f.sent[i].Offset)
		f.reopen()
		if start, _ := f.log.Bounds(); start != f.sent[i].Offset {
			f.Fatalf("log starts at %d, was trimmed to %d", start, f.sent[i].Offset)
		}
		f.verify()
	}
	f.appendMany(2)
	f.verify()
}

func testTrimToEndReopen(f *fixture) {
	for range 3 {
		f.appendMany(9)
		_, end := f.log.Bounds()
		f.trim(end)
		f.reopen()
		if start, now := f.log.Bounds(); start != end || now != end {
			f.Fatalf("log goes from %d to %d, was trimmed to its end at %d", start, now, end)
		}
		f.verify()
	}
	f.appendMany(1)
	f.verify()
}

func testTrimGivesRoom(f *fixture) {
	f.appendMany(50)
	f.fill()
	before := f.log.Size()
	f.trim(f.sent[150].Offset)
	if got := f.log.Size(); got >= before {
		f.Errorf("size is %d, was %d before 50 batches went", got, before)
	}
}
