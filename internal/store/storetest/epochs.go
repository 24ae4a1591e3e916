package storetest

import (
	"time"

	"muster/internal/assert"
	"muster/internal/record"
	"muster/internal/store"
)

var epochTests = []test{
	{"ANewerEpochFencesTheOlderHandle", testNewerEpochFences},
	{"OpeningALowerEpochIsRefused", testLowerEpochRefused},
	{"OpeningTheSameEpochEndsTheOlderHandle", testSameEpochEnds},
	{"AClosedHandleChangesNothing", testClosedHandle},
	{"EpochsListsThoseThatAppended", testEpochs},
	{"EpochsSurviveReopening", testEpochsReopen},
	{"TheEpochsOfRecordsThatRemainAreKnownAfterTrim", testEpochsTrim},
	{"EpochsWithoutRecordsAreForgottenByTrim", testEpochsForgotten},
}

// wantRefused demands that every change through a handle is refused, and
// changes nothing.
func (f *fixture) wantRefused(l store.Log, want error) {
	f.Helper()
	_, err := l.Append(f.ctx, f.build(record.PlainTemplate(), []record.Record{rec("a", "refused")}))
	f.wantErr(err, want)
	start, end := f.log.Bounds()
	f.wantErr(l.Trim(f.ctx, end), want)
	f.wantErr(l.Retain(f.ctx, store.Retention{Now: time.UnixMilli(f.clock), MaxAge: 0, MaxBytes: 0, NextOffset: end}), want)
	f.wantErr(l.Compact(f.ctx, store.Compaction{Now: time.UnixMilli(f.clock), NextOffset: end}), want)
	f.wantErr(l.SaveProducers(f.ctx, nil, start), want)
}

func testNewerEpochFences(f *fixture) {
	f.appendMany(3)
	old := f.log
	f.setEpoch(7)
	f.wantRefused(old, store.ErrFenced)
	f.verify()
	f.appendMany(3)
	f.wantRefused(old, store.ErrFenced)
	f.must(old.Close())
	f.appendMany(1)
	f.verify()
}

func testLowerEpochRefused(f *fixture) {
	f.appendMany(2)
	f.setEpoch(9)
	for _, epoch := range []int32{8, 4, 0} {
		_, err := f.h.Store.Open(f.ctx, f.tp, epoch, f.h.Config)
		f.wantErr(err, store.ErrFenced)
	}
	f.appendMany(2)
	f.verify()
	f.reopen()
	_, err := f.h.Store.Open(f.ctx, f.tp, 8, f.h.Config)
	f.wantErr(err, store.ErrFenced)
	f.appendMany(1)
	f.verify()
}

func testSameEpochEnds(f *fixture) {
	f.appendMany(2)
	old := f.log
	f.setEpoch(f.epoch)
	f.wantRefused(old, store.ErrClosed)
	f.must(old.Close())
	f.appendMany(2)
	f.verify()
}

func testClosedHandle(f *fixture) {
	f.appendMany(2)
	f.must(f.log.Close())
	f.must(f.log.Close())
	f.wantRefused(f.log, store.ErrClosed)
	f.setEpoch(f.epoch)
	f.verify()
	f.appendMany(2)
	f.verify()
}

func testEpochs(f *fixture) {
	f.appendMany(3)
	f.setEpoch(5) // Appends nothing.
	f.setEpoch(8)
	f.appendMany(20)
	f.setEpoch(9)
	f.appendMany(1)
	f.verify()
	got := f.log.Epochs()
	assert.True(f, len(got) == 3 && got[0].Epoch == 4 && got[1].Epoch == 8 && got[2].Epoch == 9, "epochs %v, appended in 4, 8 and 9", got)
}

func testEpochsReopen(f *fixture) {
	for range 5 {
		f.appendMany(4)
		f.setEpoch(f.epoch + 2)
	}
	want := f.log.Epochs()
	f.reopen()
	f.verify()
	got := f.log.Epochs()
	assert.MustEqual(f, len(got), len(want), "epochs were %v, are %v", want, got)
	for i := range got {
		assert.Equal(f, got[i], want[i], "epochs were %v, are %v", want, got)
	}
}

func testEpochsTrim(f *fixture) {
	for range 5 {
		f.appendMany(3)
		f.setEpoch(f.epoch + 1)
	}
	for i := 0; i < len(f.sent); i += 4 {
		f.must(f.log.Trim(f.ctx, f.sent[i].Offset))
		f.verify()
	}
	f.reopen()
	f.verify()
}

// testEpochsForgotten takes away all records of the first epoch: what is left begins at the
// log start offset, or a reader would be sent to where there is nothing.
func testEpochsForgotten(f *fixture) {
	f.appendMany(3)
	f.setEpoch(8)
	n := len(f.sent)
	f.appendMany(3)
	start := f.sent[n].Offset
	f.must(f.log.Trim(f.ctx, start))
	if got := f.log.Epochs(); len(got) != 1 || got[0].Epoch != 8 {
		f.Errorf("epochs %v, the log begins with 8 at %d", got, start)
	}
}
