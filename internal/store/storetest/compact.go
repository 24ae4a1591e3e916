package storetest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"muster/internal/assert"
	"muster/internal/record"
	"muster/internal/store"
)

var compactTests = []test{
	{"CompactionKeepsTheNewestOfEveryKey", testCompactKeepsNewest},
	{"CompactionDropsWhatIsSuperseded", testCompactDrops},
	{"CompactionOfAnEmptyLogChangesNothing", testCompactEmpty},
	{"CompactionTouchesNothingAtOrAboveNextOffset", testCompactNextOffset},
	{"CompactionTouchesNothingYoungerThanMinLag", testCompactMinLag},
	{"CompactionAgainAndAgainKeepsTheNewest", testCompactAgain},
	{"TombstonesStayForTheirTimeAndThenGo", testCompactTombstones},
	{"ATombstoneStaysForItsTimeAfterItWasFirstCompacted", testCompactOldTombstone},
	{"ATombstoneOutlivesWhatItDeletes", testCompactTombstoneOutlives},
	{"CompactionWithLittleMemoryGetsThereInSteps", testCompactInSteps},
	{"ANullKeySupersedesNothing", testCompactNullKey},
	{"ControlBatchesSupersedeNothing", testCompactControl},
	{"ReadingFromAnyOffsetWorksAcrossWhatIsGone", testCompactReadAnywhere},
	{"CompactionOfPackedBatchesKeepsTheirRecords", testCompactCodecs},
	{"CompactionSurvivesReopening", testCompactReopen},
	{"CompactionLeavesALogAloneThatIsHardlyDirty", testCompactHardlyDirty},
	{"CompactionAndTrimAgree", testCompactTrim},
}

// compact compacts up to an offset, at a moment when no record is too young,
// and verifies what the contract promises.
func (f *fixture) compact(next int64, deleteRetention time.Duration) {
	f.Helper()
	f.compactWith(store.Compaction{Now: time.UnixMilli(f.clock), NextOffset: next, DeleteRetention: deleteRetention})
	f.verifyCompacted(next)
}

func (f *fixture) compactWith(c store.Compaction) {
	f.Helper()
	before, end := f.log.Bounds()
	f.must(f.log.Compact(f.ctx, c))
	if start, after := f.log.Bounds(); start != before || after != end {
		f.Fatalf("compaction moved the log from %d to %d to %d to %d", before, end, start, after)
	}
}

// verifyCompacted demands that all that remains was sent, at its offset and in
// order, and that nothing is gone but what compaction up to next may drop:
// records without key, superseded records and tombstones.
func (f *fixture) verifyCompacted(next int64) {
	f.Helper()
	start, _ := f.log.Bounds()
	got := f.content()
	newest := map[string]int64{}
	for _, s := range f.sent {
		if s.Key != nil && s.Offset < next {
			newest[string(s.Key)] = s.Offset
		}
	}
	i := 0
	for _, s := range f.from(start) {
		if i < len(got) && same(got[i], s) {
			i++
			continue
		}
		assert.MustTrue(f, s.Offset < next && ((s.Key == nil || s.Value == nil) || newest[string(s.Key)] != s.Offset), "%v is gone", s)
	}
	if i != len(got) {
		f.Fatalf("%v was never sent there", got[i])
	}
	f.verifyEpochs(got)
	f.verifyBounds()
}

// holds says whether a record with this value is in the log.
func (f *fixture) holds(value string) bool {
	f.Helper()
	for _, s := range f.content() {
		if s.Value != nil && string(s.Value) == value {
			return true
		}
	}
	return false
}

func (f *fixture) end() int64 {
	_, end := f.log.Bounds()
	return end
}

func testCompactKeepsNewest(f *fixture) {
	f.appendMany(80)
	f.compact(f.end(), 0)
	f.appendMany(3)
	f.verifyCompacted(f.end())
}

func testCompactDrops(f *fixture) {
	f.append(rec("a", "old a"), rec("b", "only b"))
	f.append(rec("a", "older than new"))
	f.append(rec("a", "new a"))
	f.fill()
	f.compact(f.end(), 0)
	for value, want := range map[string]bool{"old a": false, "older than new": false, "only b": true, "new a": true} {
		if f.holds(value) != want {
			f.Errorf("%q: in the log %v, want %v", value, !want, want)
		}
	}
}

func testCompactEmpty(f *fixture) {
	f.compact(f.end(), 0)
	f.appendMany(2)
	f.trim(f.end())
	f.compact(f.end(), 0)
	f.appendMany(2)
	f.verifyCompacted(f.end())
}

func testCompactNextOffset(f *fixture) {
	f.appendMany(60)
	f.compact(-1, 0)
	for _, i := range []int{0, 1, 40, 100, 179} {
		f.compact(f.sent[i].Offset, 0)
	}
}

func testCompactMinLag(f *fixture) {
	f.appendMany(30)
	young := f.sent[45]
	f.fill()
	f.compactWith(store.Compaction{
		Now: time.UnixMilli(f.clock), NextOffset: f.end(),
		MinLag: time.Duration(f.clock-young.Timestamp+1) * time.Millisecond,
	})
	f.verifyCompacted(young.Offset)
}

func testCompactAgain(f *fixture) {
	for round := range 8 {
		for i := range 30 {
			f.append(rec(fmt.Sprintf("key-%d", (i*7+round)%11), fmt.Sprintf("%d.%d", round, i)), rec(fmt.Sprintf("once-%d.%d", round, i), strings.Repeat("v", 50)))
		}
		f.compact(f.end(), 0)
	}
}

func testCompactTombstones(f *fixture) {
	f.append(rec("gone", "value of gone"), rec("stays", "value of stays"))
	f.append(tombstone("gone"))
	at := f.sent[2]
	f.fill()
	tombstoneStays := func() bool {
		f.Helper()
		for _, s := range f.content() {
			if same(s, at) {
				return true
			}
		}
		return false
	}
	// A reader that is behind must learn of the deletion, so it stays for its
	// time, however often the log is compacted.
	for range 3 {
		f.compact(f.end(), 1000*time.Hour)
		assert.MustTrue(f, tombstoneStays(), "the tombstone is gone before its time")
		f.fill()
	}
	assert.False(f, f.holds("value of gone"), "the tombstone did not delete")
	f.clock += 2000 * time.Hour.Milliseconds()
	for range 2 {
		f.fill()
		f.compact(f.end(), 1000*time.Hour)
	}
	assert.False(f, tombstoneStays(), "the tombstone is there after its time")
	assert.True(f, f.holds("value of stays"), "a record that nothing superseded is gone")
}

// testCompactOldTombstone deletes with a record whose timestamp is long past.
// Its time begins with the pass that first sees it (KIP-534), not with its
// timestamp, also for an engine that was opened again.
func testCompactOldTombstone(f *fixture) {
	f.needDrops()
	f.append(rec("gone", "value of gone"))
	old := tombstone("gone")
	old.Timestamp = f.clock - 5000*time.Hour.Milliseconds()
	f.append(old)
	offset := f.sent[len(f.sent)-1].Offset
	held := func() bool {
		return slices.ContainsFunc(f.content(), func(s sent) bool { return s.Offset == offset })
	}
	for range 3 {
		f.fill()
		f.compact(f.end(), 1000*time.Hour)
		assert.MustTrue(f, held(), "the tombstone is gone before its time")
		if f.h.Reopen != nil {
			f.reopen()
		}
	}
	f.clock += 900 * time.Hour.Milliseconds()
	f.fill()
	f.compact(f.end(), 1000*time.Hour)
	assert.MustTrue(f, held(), "the tombstone is gone before its time")
	f.clock += 200 * time.Hour.Milliseconds()
	f.fill()
	f.compact(f.end(), 1000*time.Hour)
	assert.False(f, held(), "the tombstone is there after its time")
}

// testCompactInSteps compacts with room for so few keys that each pass gets
// through a few batches only.
func testCompactInSteps(f *fixture) {
	f.needDrops()
	for round := range 3 {
		for i := range 12 {
			key := fmt.Sprintf("key-%d", i)
			f.append(rec(key, fmt.Sprintf("%s in round %d", key, round)), rec("every batch", strings.Repeat("v", 100)))
		}
	}
	next := f.end()
	f.fill()
	for range 40 {
		f.compactWith(store.Compaction{Now: time.UnixMilli(f.clock), NextOffset: f.end(), MaxKeys: 3})
	}
	for _, s := range f.content() {
		if s.Offset < next && !strings.Contains(string(s.Value), "round 2") && string(s.Key) != "every batch" {
			f.Fatalf("%v was superseded, and is there", s)
		}
	}
}

// testCompactTombstoneOutlives looks for a key that comes back from the dead:
// its tombstone was dropped before its last value.
func testCompactTombstoneOutlives(f *fixture) {
	for round := range 12 {
		for i := range 10 {
			key := fmt.Sprintf("key-%d", i)
			f.append(rec(key, fmt.Sprintf("%s in round %d", key, round)))
			if (i+round)%3 == 0 {
				f.append(tombstone(key))
			}
		}
		f.compact(f.sent[len(f.sent)*2/3].Offset, 0)
		last := map[string]sent{}
		for _, s := range f.content() {
			last[string(s.Key)] = s
		}
		for _, s := range f.sent {
			l, ok := last[string(s.Key)]
			assert.MustFalse(f, ok && l.Offset < s.Offset, "%v deleted its key, but now the newest is %v", s, l)
		}
	}
}

func testCompactNullKey(f *fixture) {
	f.append(recAt(1, "", "empty key"))
	f.append(record.Record{Timestamp: 2, Value: []byte("null key")})
	f.append(recAt(3, "x", "keyed"))
	if f.h.Slack >= 0 && f.h.Slack <= maxSlack {
		f.fill()
	}
	f.compact(f.end(), 0)
	assert.True(f, f.holds("empty key"), "a record with an empty key was superseded by one without key")
}

func testCompactControl(f *fixture) {
	commit := []byte{0, 0, 0, 1} // The key of a commit marker.
	f.append(record.Record{Timestamp: 1, Key: commit, Value: []byte("a user's")})
	control := record.PlainTemplate()
	control.Control, control.Transactional, control.ProducerID, control.ProducerEpoch = true, true, 9, 0
	if f.h.NoTransactions {
		_, err := f.log.Append(f.ctx, f.build(control, []record.Record{{Timestamp: 2, Key: commit, Value: []byte{0, 0, 0, 0, 0, 0}}}))
		f.wantErr(err, store.ErrInvalidBatch)
		f.verify()
		return
	}
	f.appendBatch(control, record.Record{Timestamp: 2, Key: commit, Value: []byte{0, 0, 0, 0, 0, 0}})
	if f.h.Slack >= 0 && f.h.Slack <= maxSlack {
		f.fill()
	}
	f.compactWith(store.Compaction{Now: time.UnixMilli(f.clock), NextOffset: f.end()})
	assert.True(f, f.holds("a user's"), "a transaction marker superseded a record")
}

func testCompactReadAnywhere(f *fixture) {
	for range 4 {
		f.appendMany(25)
		f.compact(f.end(), 0)
	}
	remain, end := f.content(), f.end()
	for _, s := range f.sent {
		at := s.Offset
		for len(remain) > 0 && remain[0].Offset < at {
			remain = remain[1:]
		}
		f.equal(f.readRange(at, end, 1), remain)
		// Where nothing is left before the bound, nothing is read.
		if len(remain) > 0 && remain[0].Offset > at {
			if got := f.readRange(at, remain[0].Offset, 1<<20); len(got) != 0 {
				f.Fatalf("%v read between %d and %d", got, at, remain[0].Offset)
			}
		}
	}
}

func testCompactCodecs(f *fixture) {
	for i := range 20 {
		tmpl := record.PlainTemplate()
		tmpl.Codec = record.Codec(i % 5)
		f.appendBatch(tmpl, rec("same", fmt.Sprint(i)), rec(fmt.Sprint("own", i), strings.Repeat("v", 100)), tombstone(fmt.Sprint("own", i-3)))
	}
	f.compact(f.end(), 1000*time.Hour)
	f.compact(f.end(), 0)
}

func testCompactReopen(f *fixture) {
	for range 3 {
		f.appendMany(40)
		f.compact(f.end(), 0)
		want := f.content()
		next := f.end()
		f.reopen()
		f.equal(f.content(), want)
		f.verifyCompacted(next)
	}
	f.appendMany(2)
	f.verifyCompacted(f.end())
}

func testCompactHardlyDirty(f *fixture) {
	for i := range 60 {
		f.append(rec(fmt.Sprintf("key-%d", i), strings.Repeat("v", 300)))
	}
	f.compact(f.end(), 0)
	for i := range 5 {
		f.append(rec(fmt.Sprintf("key-%d", i), "superseding"))
	}
	want := f.content()
	f.compactWith(store.Compaction{Now: time.UnixMilli(f.clock), NextOffset: f.end(), MinDirtyRatio: 0.9})
	f.equal(f.content(), want)
}

func testCompactTrim(f *fixture) {
	f.appendMany(50)
	f.compact(f.end(), 0)
	for _, i := range []int{10, 55, 100} {
		f.must(f.log.Trim(f.ctx, f.sent[i].Offset))
		f.verifyCompacted(f.end())
		f.appendMany(10)
		f.compact(f.end(), 0)
	}
	f.must(f.log.Trim(f.ctx, f.end()))
	f.appendMany(1)
	f.verifyCompacted(f.end())
}
