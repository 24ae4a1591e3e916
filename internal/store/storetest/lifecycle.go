package storetest

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"muster/internal/assert"
	"muster/internal/store"
)

var lifecycleTests = []test{
	{"ADeletedLogCanBeMadeAnewAndIsEmpty", testDeleteRecreate},
	{"DeletingALogEndsItsHandles", testDeleteWhileOpen},
	{"DeletingWhatDoesNotExistIsNoError", testDeleteMissing},
	{"ADeletedLogStaysDeletedAfterReopening", testDeleteReopen},
	{"ListReturnsTheLogsThatExist", testList},
	{"AClosedStoreRefusesEverything", testClosedStore},
	{"LogsDoNotMix", testManyLogs},
}

func testDeleteRecreate(f *fixture) {
	for range 3 {
		f.appendMany(10)
		f.must(f.log.SaveProducers(f.ctx, []store.Producer{{ID: 5}}, f.end()))
		f.must(f.log.Trim(f.ctx, f.sent[4].Offset))
		f.must(f.h.Store.Delete(f.ctx, f.tp))
		f.sent = nil
		// The epoch of a topic that is created again starts anew.
		f.setEpoch(0)
		testNewLogIsEmpty(f)
		f.appendMany(2)
		f.verify()
	}
}

func testDeleteWhileOpen(f *fixture) {
	f.appendMany(10)
	l := f.log
	f.must(f.h.Store.Delete(f.ctx, f.tp))
	f.wantRefused(l, store.ErrClosed)
	f.wantEnded(l)
	f.sent, f.log = nil, f.open(f.epoch)
	f.verify()
	f.appendMany(1)
	f.wantRefused(l, store.ErrClosed)
	f.wantEnded(l)
	f.verify()
}

// wantEnded demands that a handle answers every question with ErrClosed.
func (f *fixture) wantEnded(l store.Log) {
	f.Helper()
	_, err := l.Read(f.ctx, store.ReadRequest{Offset: 0, NextOffset: 1, MaxBytes: 1000, MinOne: true})
	f.wantErr(err, store.ErrClosed)
	_, _, err = l.OffsetForTimestamp(f.ctx, 0)
	f.wantErr(err, store.ErrClosed)
	_, _, err = l.MaxTimestamp(f.ctx)
	f.wantErr(err, store.ErrClosed)
	_, _, err = l.Producers(f.ctx)
	f.wantErr(err, store.ErrClosed)
	done := make(chan error, 1)
	l.Flush(func(err error) { done <- err })
	f.wantErr(<-done, store.ErrClosed)
	f.must(l.Close())
}

func testDeleteMissing(f *fixture) {
	f.must(f.h.Store.Delete(f.ctx, store.TopicPartition{Topic: "none", Partition: 1}))
	f.must(f.h.Store.Delete(f.ctx, store.TopicPartition{Topic: f.tp.Topic, Partition: f.tp.Partition + 1}))
	f.appendMany(1)
	f.verify()
}

func testDeleteReopen(f *fixture) {
	f.appendMany(10)
	other := store.TopicPartition{Topic: "other"}
	_, err := f.openLog(other, 1).Append(f.ctx, mustBuild(f.T, "k", "v"))
	f.must(err)
	f.must(f.h.Store.Delete(f.ctx, other))
	f.reopen()
	f.verify()
	f.wantList(f.tp)
	l := f.openLog(other, 0)
	if start, end := l.Bounds(); start != end {
		f.Errorf("deleted log goes from %d to %d", start, end)
	}
}

func (f *fixture) wantList(want ...store.TopicPartition) {
	f.Helper()
	got, err := f.h.Store.List(f.ctx)
	f.must(err)
	order := func(a, b store.TopicPartition) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	}
	slices.SortFunc(got, order)
	want = slices.SortedFunc(slices.Values(want), order)
	assert.MustEqualSlices(f, got, want, "logs")
}

func testList(f *fixture) {
	want := []store.TopicPartition{f.tp}
	for _, topic := range []string{"a", "a-1", "a-1-2", "a.b_c", "__consumer_offsets", "clean-shutdown", "-", "7"} {
		for _, p := range []int32{0, 12, 2147483647} {
			want = append(want, store.TopicPartition{Topic: topic, Partition: p})
		}
	}
	f.appendMany(1)
	for _, tp := range want[1:] {
		_, err := f.openLog(tp, 1).Append(f.ctx, mustBuild(f.T, tp.Topic, fmt.Sprint(tp.Partition)))
		f.must(err)
	}
	f.wantList(want...)
	f.must(f.h.Store.Delete(f.ctx, want[len(want)-1]))
	want = want[:len(want)-1]
	f.wantList(want...)
	f.reopen()
	f.wantList(want...)
	for _, tp := range want[1:] {
		f.verifySingle(f.openLog(tp, 1), tp.Topic, fmt.Sprint(tp.Partition))
	}
}

// verifySingle demands that a log holds one record.
func (f *fixture) verifySingle(l store.Log, key, value string) {
	f.Helper()
	saved := f.log
	f.log = l
	defer func() { f.log = saved }()
	got := f.content()
	assert.MustTrue(f, len(got) == 1 && string(got[0].Key) == key && string(got[0].Value) == value, "%v, want one record %s with %s", got, key, value)
}

func testClosedStore(f *fixture) {
	f.appendMany(3)
	f.must(f.h.Store.Close())
	f.must(f.h.Store.Close())
	_, err := f.h.Store.Open(f.ctx, f.tp, f.epoch+1, f.h.Config)
	f.wantErr(err, store.ErrClosed)
	_, err = f.h.Store.List(f.ctx)
	f.wantErr(err, store.ErrClosed)
	f.wantErr(f.h.Store.Delete(f.ctx, f.tp), store.ErrClosed)
	f.wantRefused(f.log, store.ErrClosed)
	f.wantEnded(f.log)
}

func testManyLogs(f *fixture) {
	logs := many(200)
	name := func(i int) store.TopicPartition {
		return store.TopicPartition{Topic: fmt.Sprintf("topic-%d", i%20), Partition: int32(i / 20)}
	}
	all := make([]*fixture, logs)
	for i := range all {
		all[i] = &fixture{T: f.T, ctx: f.ctx, h: f.h, tp: name(i), epoch: 1, clock: f.clock + int64(i)*time.Hour.Milliseconds()}
		all[i].log = all[i].open(1)
	}
	for round := range 3 {
		for i, one := range all {
			one.append(rec(fmt.Sprintf("log %d", i), fmt.Sprintf("round %d", round)))
		}
	}
	for i, one := range all {
		if i%10 == 0 {
			one.trim(one.sent[1].Offset)
		}
		one.verify()
	}
	f.reopen()
	for _, one := range all {
		one.h.Store = f.h.Store
		one.log = one.open(1)
		one.verify()
	}
}
