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

var producerTests = []test{
	{"ProducersCanBeCompletedByReading", testProducers},
	{"ProducersSurviveReopening", testProducersReopen},
	{"ProducersAreKnownAfterTrim", testProducersTrim},
	{"ASnapshotOfNoProducersIsKept", testNoProducers},
	{"ProducersOfWhatWasTrimmedAreKnown", testProducersOfTrimmed},
	{"ProducersOfWhatRetentionDroppedAreKnown", testProducersOfRetained},
	{"ProducersOfWhatCompactionDroppedAreKnown", testProducersOfCompacted},
}

// producerState is the producer state by producer id.
type producerState map[int64]store.Producer

// note takes a batch into the state, as the owner of a log does.
func (ps producerState) note(b record.Batch) {
	if b.ProducerID() < 0 {
		return
	}
	p, known := ps[b.ProducerID()]
	if !known {
		p = *store.NewProducer(b.ProducerID())
	}
	p.ID, p.Epoch, p.LastTimestamp = b.ProducerID(), b.ProducerEpoch(), b.MaxTimestamp()
	p.Batches = append(slices.Clone(p.Batches), store.ProducerBatch{
		BaseSequence: b.BaseSequence(), LastSequence: b.LastSequence(),
		BaseOffset: b.BaseOffset(), LastOffset: b.LastOffset(), Timestamp: b.MaxTimestamp(),
	})
	if extra := len(p.Batches) - store.ProducerBatches; extra > 0 {
		p.Batches = p.Batches[extra:]
	}
	ps[p.ID] = p
}

func (ps producerState) list() []store.Producer {
	var out []store.Producer
	for _, p := range ps {
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b store.Producer) int { return int(a.ID - b.ID) })
	return out
}

// appendProduced appends n batches of several producers, and notes them.
func (f *fixture) appendProduced(ps producerState, n int) {
	f.Helper()
	for i := range n {
		tmpl := record.PlainTemplate()
		tmpl.ProducerID, tmpl.ProducerEpoch = int64(100+i%3), 2
		tmpl.BaseSequence = 0
		if known := ps[tmpl.ProducerID].Batches; len(known) > 0 {
			tmpl.BaseSequence = known[len(known)-1].LastSequence + 1
		}
		a := f.appendBatch(tmpl, rec(fmt.Sprintf("key-%d", i), "value"), rec("other", "value"))
		b := f.build(tmpl, []record.Record{recAt(f.clock-1000, "", ""), recAt(f.clock, "", "")})
		b.SetBaseOffset(a.BaseOffset)
		ps.note(b)
	}
}

// verifyProducers completes what the engine kept by reading, as the owner of a
// log does when it opens it, and compares.
func (f *fixture) verifyProducers(want producerState) {
	f.Helper()
	kept, from, err := f.log.Producers(f.ctx)
	f.must(err)
	start, end := f.log.Bounds()
	assert.MustTrue(f, from >= start && from <= end, "producer state is as of %d, the log goes from %d to %d", from, start, end)
	got := producerState{}
	for _, p := range kept {
		got[p.ID] = p
	}
	for at := from; at < end; {
		batches := f.read(store.ReadRequest{Offset: at, NextOffset: end, MaxBytes: 1000, MinOne: true})
		if len(batches) == 0 {
			break
		}
		for _, b := range batches {
			if b.BaseOffset() >= from {
				got.note(b)
			}
			at = b.LastOffset() + 1
		}
	}
	assert.MustDeepEqual(f, got.list(), want.list(), "producers")
}

func testProducers(f *fixture) {
	ps := producerState{}
	f.verifyProducers(ps)
	for range 6 {
		f.appendProduced(ps, 4)
		f.verifyProducers(ps)
		f.must(f.log.SaveProducers(f.ctx, ps.list(), f.end()))
		f.verifyProducers(ps)
	}
	f.setEpoch(f.epoch + 1)
	f.verifyProducers(ps)
}

func testProducersReopen(f *fixture) {
	ps := producerState{}
	for range 4 {
		f.appendProduced(ps, 5)
		f.must(f.log.SaveProducers(f.ctx, ps.list(), f.end()))
		f.appendProduced(ps, 2)
		f.reopen()
		f.verifyProducers(ps)
	}
}

func testProducersTrim(f *fixture) {
	ps := producerState{}
	f.appendProduced(ps, 12)
	f.must(f.log.SaveProducers(f.ctx, ps.list(), f.end()))
	f.trim(f.end())
	f.verifyProducers(ps)
	f.appendProduced(ps, 2)
	f.verifyProducers(ps)
	f.reopen()
	f.verifyProducers(ps)
}

func testNoProducers(f *fixture) {
	f.must(f.log.SaveProducers(f.ctx, nil, f.end()))
	f.appendMany(3)
	f.must(f.log.SaveProducers(f.ctx, nil, f.end()))
	f.verifyProducers(producerState{})
}

// verifyProducersAnywhere verifies the producers for this owner of the log, the
// next, and after the store was opened again.
func (f *fixture) verifyProducersAnywhere(want producerState) {
	f.Helper()
	f.verifyProducers(want)
	f.setEpoch(f.epoch + 1)
	f.verifyProducers(want)
	if f.h.Reopen != nil {
		f.reopen()
		f.verifyProducers(want)
	}
}

// The next tests save nothing themselves, or not lately: it is the engine that
// takes batches away, so it is the engine that must remember who sent them.

func testProducersOfTrimmed(f *fixture) {
	ps := producerState{}
	f.appendProduced(ps, 3)
	f.must(f.log.SaveProducers(f.ctx, ps.list(), f.end()))
	f.appendProduced(ps, 6)
	at := f.end()
	f.append(rec("somebody", "else's"), rec("second", "of a batch"))
	for _, to := range []int64{f.sent[1].Offset, f.sent[8].Offset, f.sent[9].Offset, at, f.sent[len(f.sent)-1].Offset, f.end()} {
		f.must(f.log.Trim(f.ctx, to))
		f.verifyProducersAnywhere(ps)
	}
	f.appendProduced(ps, 1)
	f.verifyProducersAnywhere(ps)
}

func testProducersOfRetained(f *fixture) {
	ps := producerState{}
	for range 3 {
		f.appendProduced(ps, 5)
		f.clock += time.Hour.Milliseconds()
		f.retain(time.Minute, -1, f.end())
		f.verifyProducersAnywhere(ps)
	}
	f.appendProduced(ps, 2)
	for range 20 {
		f.append(rec("filler", strings.Repeat("f", 500)))
	}
	f.retain(-1, 1000, f.end())
	f.verifyProducersAnywhere(ps)
}

func testProducersOfCompacted(f *fixture) {
	ps := producerState{}
	for range 3 {
		f.appendProduced(ps, 5)
		for range 20 {
			f.append(rec("other", strings.Repeat("f", 500)))
			f.append(rec(fmt.Sprintf("key-%d", len(f.sent)%5), "superseded"))
		}
		f.compact(f.end(), 0)
		f.verifyProducersAnywhere(ps)
	}
}
