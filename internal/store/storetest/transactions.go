package storetest

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"time"

	"muster/internal/assert"
	"muster/internal/record"
	"muster/internal/store"
)

var transactionTests = []test{
	{"AbortedTransactionsAreFoundByRange", testAbortedRange},
	{"AbortedTransactionsAreInTheOrderOfTheirFirstOffsets", testAbortedSorted},
	{"AMarkerWithoutDataAbortsNothing", testMarkerAlone},
	{"OpenTransactionsSurviveReopening", testOpenTransactions},
	{"AbortedTransactionsGoWithTheirRecords", testAbortedTrimmed},
	{"CompactAborted", testCompactAborted},
	{"CompactKeepsMarkers", testCompactKeepsMarkers},
	{"CompactKeepsTheLastBatchOfAProducer", testCompactKeepsLast},
	{"CompactKeepsTheLastMarkerOfAnEpoch", testCompactKeepsLastMarker},
	{"CompactDropsTheMarkersBeforeTheLast", testCompactDropsMarkers},
	{"ThousandsOfAbortedTransactions", testManyAborted},
	{"TransactionsAgreeWithTheRawLog", func(f *fixture) { newOwner(f).random(1, 120) }},
	{"TransactionsAgreeWithTheRawLogAgain", func(f *fixture) { newOwner(f).random(2, 120) }},
	{"TransactionsAgreeWithTheRawLogOnceMore", func(f *fixture) { newOwner(f).random(3, 120) }},
}

// owner is what owns a log: it knows the producers, and tells the log of aborted
// transactions as the contract demands it of it.
type owner struct {
	*fixture
	producers store.ProducerMap
	aborted   []store.Aborted // all there ever were
	committed map[int64]bool  // by offset: records whose transaction was, or that had none
	pending   map[int64][]int64
	compacted bool
}

func newOwner(f *fixture) *owner {
	f.Helper()
	if f.h.NoTransactions {
		f.Skip("the engine has no place for transactions")
	}
	return &owner{fixture: f, producers: store.NewProducerMap(nil), committed: map[int64]bool{}, pending: map[int64][]int64{}}
}

// write appends a batch of a producer, within a transaction or not.
func (o *owner) write(id int64, transactional bool, recs ...record.Record) store.Appended {
	o.Helper()
	t := record.PlainTemplate()
	t.ProducerID, t.Transactional, t.ProducerEpoch, t.BaseSequence = id, transactional, 0, 0
	if p := o.producers[id]; p != nil {
		t.ProducerEpoch = p.Epoch
		if n := len(p.Batches); n > 0 {
			t.BaseSequence = record.AddSequence(p.Batches[n-1].LastSequence, 1)
		}
	}
	if id < 0 {
		t = record.PlainTemplate()
	}
	b := o.build(t, recs)
	at := o.appendRaw(b)
	for i := range recs {
		offset := at.BaseOffset + int64(i)
		if transactional {
			o.pending[id] = append(o.pending[id], offset)
		} else {
			o.committed[offset] = true
		}
	}
	return at
}

// appendRaw appends a batch and does what an owner does then.
func (o *owner) appendRaw(b record.Batch) store.Appended {
	o.Helper()
	at, err := o.log.Append(o.ctx, b)
	o.must(err)
	b.SetBaseOffset(at.BaseOffset)
	aborted, err := o.producers.Note(b, b.MaxTimestamp())
	o.must(err)
	if aborted != nil {
		o.aborted = append(o.aborted, *aborted)
		o.must(o.log.NoteAborted(o.ctx, []store.Aborted{*aborted}))
	}
	return at
}

// finish ends a transaction, as coordinators of today do, with the next epoch, or
// as those before them.
func (o *owner) finish(id int64, commit, nextEpoch bool) store.Appended {
	o.Helper()
	epoch := int16(0)
	if p := o.producers[id]; p != nil {
		epoch = p.Epoch
	}
	if nextEpoch {
		epoch++
	}
	o.clock += 1000
	b, err := record.BuildMarker(id, epoch, record.Marker{Commit: commit, CoordinatorEpoch: 6}, o.clock)
	o.must(err)
	at := o.appendRaw(b)
	for _, offset := range o.pending[id] {
		o.committed[offset] = commit
	}
	delete(o.pending, id)
	return at
}

// stable is the last stable offset.
func (o *owner) stable() int64 {
	start, end := o.log.Bounds()
	for _, p := range o.producers {
		if p.TxnFirst != store.NoTxn {
			end = min(end, p.TxnFirst)
		}
	}
	return max(start, end)
}

// reload learns about the producers as an owner does that opens the log, and
// demands that they are those that the owner before knew.
func (o *owner) reload() {
	o.Helper()
	list, from, err := o.log.Producers(o.ctx)
	o.must(err)
	got := store.NewProducerMap(list)
	var found []store.Aborted
	for _, b := range o.batches(from, o.end()) {
		if b.BaseOffset() < from {
			continue
		}
		a, err := got.Note(b, b.MaxTimestamp())
		o.must(err)
		if a != nil {
			found = append(found, *a)
		}
	}
	o.must(o.log.NoteAborted(o.ctx, found))
	assert.MustDeepEqual(o, got.List(), o.producers.List(), "producers")
}

// batches reads the batches from an offset up to another.
func (o *owner) batches(from, next int64) (out []record.Batch) {
	o.Helper()
	for at := from; at < next; {
		part := o.read(store.ReadRequest{Offset: at, NextOffset: next, MaxBytes: 600, MinOne: true})
		if len(part) == 0 {
			break
		}
		out = append(out, part...)
		at = out[len(out)-1].LastOffset() + 1
	}
	return out
}

func (o *owner) find(from, next int64) []store.Aborted {
	o.Helper()
	got, err := o.log.Aborted(o.ctx, from, next)
	o.must(err)
	return got
}

func (o *owner) wantAborted(from, next int64, want ...store.Aborted) {
	o.Helper()
	if got := o.find(from, next); len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) {
		o.Fatalf("aborted from %d to %d:\n%+v, want\n%+v", from, next, got, want)
	}
}

// check holds the log against what is known about it: which transactions were
// aborted, and what a reader of committed records gets from several offsets on.
func (o *owner) check() {
	o.Helper()
	start, end := o.log.Bounds()
	raw := o.batches(start, end)
	markers := map[int64]int64{} // of aborts: the producer by offset
	for _, b := range raw {
		if m, ok, err := b.Marker(); b.Control() && ok && err == nil && !m.Commit {
			markers[b.LastOffset()] = b.ProducerID()
		}
	}
	var want []store.Aborted
	for _, a := range o.aborted {
		if a.LastOffset >= start {
			want = append(want, a)
		}
	}
	listed := o.find(start, end)
	for _, a := range listed {
		if id, ok := markers[a.LastOffset]; !ok || id != a.ProducerID {
			o.Fatalf("%+v is listed, but its marker is not in the log", a)
		}
	}
	assert.MustFalse(o, !o.compacted && len(listed) != len(want), "aborted are %+v, want %+v", listed, want)
	stable := o.stable()
	o.checkReader(start, stable)
	for _, b := range raw {
		if b.BaseOffset() >= start && b.BaseOffset() < stable && b.BaseOffset()%3 == 0 {
			o.checkReader(b.BaseOffset(), stable)
		}
	}
}

// checkReader reads as a client does that wants committed records only, and
// demands that it gets all of those that are there, and no others.
func (o *owner) checkReader(from, next int64) {
	o.Helper()
	queue, skip := o.find(from, next), map[int64]bool{}
	for _, b := range o.batches(from, next) {
		for len(queue) > 0 && queue[0].FirstOffset <= b.LastOffset() {
			skip[queue[0].ProducerID] = true
			queue = queue[1:]
		}
		if b.Control() {
			if m, ok, err := b.Marker(); err == nil && ok && !m.Commit {
				delete(skip, b.ProducerID())
			}
			continue
		}
		skipped := b.Transactional() && skip[b.ProducerID()]
		for _, r := range o.recordsOf(b) {
			if r.Offset >= from && o.committed[r.Offset] == skipped {
				o.Fatalf("reading from %d, %v: committed %v, skipped %v", from, r, o.committed[r.Offset], skipped)
			}
		}
	}
}

// clean compacts up to the last stable offset.
func (o *owner) clean(retention time.Duration) {
	o.Helper()
	newest := map[string]sent{}
	start, _ := o.log.Bounds()
	for _, r := range o.readRange(start, o.stable(), 700) {
		if o.committed[r.Offset] && r.Key != nil {
			newest[string(r.Key)] = r
		}
	}
	o.compactWith(store.Compaction{Now: time.UnixMilli(o.clock), NextOffset: o.stable(), DeleteRetention: retention})
	o.compacted = true
	for _, r := range o.readRange(start, o.stable(), 700) {
		if same(newest[string(r.Key)], r) {
			delete(newest, string(r.Key))
		}
	}
	for _, r := range newest {
		assert.MustTrue(o, r.Value == nil, "%v was committed, is the newest of its key, and is gone", r)
	}
}

func (o *owner) reopenAll() {
	o.Helper()
	o.setEpoch(o.epoch + 1)
	o.reload()
	if o.h.Reopen != nil {
		o.reopen()
		o.reload()
	}
}

// random does whatever a log may see.
func (o *owner) random(seed uint64, steps int) {
	rng := rand.New(rand.NewPCG(seed, 7))
	for i := range steps {
		id := 10 + rng.Int64N(4)
		key := func() string { return fmt.Sprintf("key-%d", rng.IntN(6)) }
		value := strings.Repeat("v", 1+rng.IntN(120))
		switch n := rng.IntN(100); {
		case n < 15:
			o.write(-1, false, rec(key(), value))
		case n < 45 || id == 13 && n < 50:
			o.write(id, id < 13, rec(key(), value), rec(key(), "second"))
		case n < 72 && id < 13:
			o.finish(id, rng.IntN(2) == 0, rng.IntN(2) == 0)
		case n < 77:
			start, end := o.log.Bounds()
			o.must(o.log.Trim(o.ctx, start+rng.Int64N(end-start+1)/4))
		case n < 87:
			o.clean(time.Duration(rng.IntN(2)) * time.Minute)
		case n < 92:
			o.must(o.log.SaveProducers(o.ctx, o.producers.List(), o.end()))
		default:
			o.reopenAll()
		}
		o.clock += 5000
		if i%4 == 0 {
			o.check()
		}
	}
	o.reopenAll()
	o.check()
}
