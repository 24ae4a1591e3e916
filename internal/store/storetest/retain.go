package storetest

import (
	"runtime"
	"strings"
	"time"

	"muster/internal/assert"
	"muster/internal/store"
)

var retainTests = []test{
	{"RetentionWithoutLimitsDropsNothing", testRetainNoLimits},
	{"RetentionOfAnEmptyLogDropsNothing", testRetainEmpty},
	{"RetentionNeverDropsAtOrAboveNextOffset", testRetainNextOffset},
	{"RetentionByTimeKeepsWhatIsYoung", testRetainTimeKeepsYoung},
	{"RetentionByTimeDropsWhatIsOld", testRetainTimeDropsOld},
	{"AYoungRecordProtectsThoseAfterIt", testRetainYoungProtects},
	{"RetentionBySizeKeepsThatMuch", testRetainSizeKeeps},
	{"RetentionBySizeDropsTheRest", testRetainSizeDrops},
	{"RetentionSurvivesReopening", testRetainReopen},
	{"ARecordThatComesLaterDoesNotMoveTheLogStart", testRetainThenAppend},
}

// retain applies retention and demands that the records from the new start on
// are all there.
func (f *fixture) retain(age time.Duration, size, next int64) (start int64) {
	f.Helper()
	before, end := f.log.Bounds()
	f.must(f.log.Retain(f.ctx, store.Retention{Now: time.UnixMilli(f.clock), MaxAge: age, MaxBytes: size, NextOffset: next}))
	start, after := f.log.Bounds()
	assert.MustTrue(f, start >= before && after == end, "retention moved the log from %d to %d to %d to %d", before, end, start, after)
	f.verify()
	return start
}

func testRetainNoLimits(f *fixture) {
	f.appendMany(30)
	f.clock += time.Hour.Milliseconds() * 24 * 365
	_, end := f.log.Bounds()
	if start := f.retain(-1, -1, end); start > f.sent[0].Offset {
		f.Errorf("log starts at %d, its first record is at %d", start, f.sent[0].Offset)
	}
}

func testRetainEmpty(f *fixture) {
	_, end := f.log.Bounds()
	f.retain(0, 0, end)
	f.appendMany(1)
	f.verify()
}

func testRetainNextOffset(f *fixture) {
	f.appendMany(30)
	f.clock += time.Hour.Milliseconds()
	for _, i := range []int{0, 1, 30, 31, 89} {
		next := f.sent[i].Offset
		if start := f.retain(0, 0, next); start > next {
			f.Fatalf("log starts at %d, nothing at or above %d may go", start, next)
		}
	}
}

func testRetainTimeKeepsYoung(f *fixture) {
	f.appendMany(30)
	_, end := f.log.Bounds()
	for _, i := range []int{5, 20, 50, 80} {
		// The record at i is just young enough.
		age := time.Duration(f.clock-f.sent[i].Timestamp) * time.Millisecond
		if start := f.retain(age, -1, end); start > f.sent[i].Offset {
			f.Fatalf("log starts at %d, but %v is young enough", start, f.sent[i])
		}
	}
}

func testRetainTimeDropsOld(f *fixture) {
	f.appendMany(30)
	first := len(f.sent)
	f.clock += time.Hour.Milliseconds()
	f.fill()
	_, end := f.log.Bounds()
	age := time.Duration(f.clock-f.sent[first].Timestamp) * time.Millisecond
	start := f.retain(age, -1, end)
	// A unit that young and old records share may stay.
	if kept := f.sizeBetween(start, f.sent[first].Offset); kept > f.h.Slack {
		f.Errorf("%d bytes of old records stay; the log starts at %d, what is young at %d", kept, start, f.sent[first].Offset)
	}
	f.clock += time.Hour.Milliseconds()
	f.append(rec("last", "one"))
	_, end = f.log.Bounds()
	start = f.retain(0, -1, end)
	if kept := f.sizeBetween(start, f.sent[len(f.sent)-1].Offset); kept > f.h.Slack {
		f.Errorf("%d bytes of old records stay", kept)
	}
}

// sizeBetween is a lower bound of the bytes that records take.
func (f *fixture) sizeBetween(from, next int64) (n int64) {
	for _, s := range f.sent {
		if s.Offset >= from && s.Offset < next {
			n += int64(len(s.Key) + len(s.Value))
		}
	}
	return n
}

func testRetainYoungProtects(f *fixture) {
	now := f.clock
	f.append(recAt(now, "young", strings.Repeat("y", 200)))
	for range 60 {
		f.append(recAt(now-time.Hour.Milliseconds(), "old", strings.Repeat("o", 200)))
	}
	_, end := f.log.Bounds()
	if start := f.retain(time.Minute, -1, end); start > f.sent[0].Offset {
		f.Errorf("log starts at %d, but its first record is young", start)
	}
}

func testRetainSizeKeeps(f *fixture) {
	f.appendMany(60)
	_, end := f.log.Bounds()
	for size := f.log.Size() + 100; size > 0; size -= 700 {
		before := f.log.Size()
		f.retain(-1, size, end)
		if got := f.log.Size(); got < min(size, before) {
			f.Fatalf("%d bytes remain of %d, %d were to be kept", got, before, size)
		}
	}
	f.retain(-1, 0, end)
}

func testRetainSizeDrops(f *fixture) {
	f.appendMany(60)
	f.fill()
	const batch = 1000 // No batch is larger.
	_, end := f.log.Bounds()
	size := f.log.Size() / 2
	f.retain(-1, size, end)
	if got := f.log.Size(); got > size+f.h.Slack+batch {
		f.Errorf("%d bytes remain, %d were to be kept", got, size)
	}
}

func testRetainReopen(f *fixture) {
	f.appendMany(60)
	f.clock += time.Hour.Milliseconds()
	_, end := f.log.Bounds()
	start := f.retain(0, 0, end)
	f.reopen()
	if got, _ := f.log.Bounds(); got != start {
		f.Errorf("log starts at %d, did at %d", got, start)
	}
	f.verify()
	f.appendMany(1)
	f.verify()
}

// testRetainThenAppend has a log whose only record is too old, and then another. Offsets may
// be made of the clock, so that there is a gap between the two. Who has read the first is
// there, and has lost nothing.
func testRetainThenAppend(f *fixture) {
	f.clock = time.Now().UnixMilli()
	f.append(recAt(f.clock, "old", "read by all"))
	f.clock += 10
	for time.Now().UnixMilli() <= f.clock {
		runtime.Gosched()
	}
	before, _ := f.log.Bounds()
	start := f.retain(0, -1, f.end())
	if read := f.sent[0].Offset + 1; start != before && start != read {
		f.Errorf("the log starts at %d, and what went ended at %d", start, read)
	}
	f.append(recAt(time.Now().UnixMilli(), "new", "read by none"))
	if after := f.retain(0, -1, f.end()); after != start {
		f.Errorf("the log starts at %d, and did at %d, though nothing went", after, start)
	}
}
