package storetest

import (
	"maps"
	"testing"

	"muster/internal/assert"
	"muster/internal/record"
	"muster/internal/store"
)

// Losing is an engine that can lose what it stored last, by a loss of power or
// by a server that comes back with an older state.
type Losing struct {
	Harness
	// Mark makes what is stored survive Lose. It is flushed.
	Mark func(t *testing.T)
	// Lose takes what was stored since Mark, or some of it, and returns the store
	// that goes on. That is the one there was if its handles live on.
	Lose func(t *testing.T) store.Store
}

var lossTests = []struct {
	name string
	run  func(f *fixture, h Losing)
}{
	{"WhatIsStoredAfterALossIsThere", testStoredAfterLoss},
	{"WhereAnEpochEndedIsKnownAfterALoss", testEpochEndAfterLoss},
	{"AHandleOfBeforeTheLossStoresNothing", testHandleAfterLoss},
	{"LostBatchesOfProducersAreForgotten", testProducersAfterLoss},
	{"LossAfterLossIsTold", testLossAfterLoss},
}

// RunLosing demands what must hold after a loss: nothing that is stored after it
// is lost with it, and nothing of what was lost is still believed.
func RunLosing(t *testing.T, open func(t *testing.T) Losing) {
	for _, test := range lossTests {
		t.Run(test.name, func(t *testing.T) {
			h := open(t)
			test.run(newFixture(t, h.Harness), h)
		})
	}
}

// mark makes what was sent so far survive, and returns where the log ends.
func (f *fixture) mark(h Losing) int64 {
	f.Helper()
	f.flush()
	h.Mark(f.T)
	return f.end()
}

// lose takes what came after a mark, and opens the log under the same epoch, as
// the owner of a log that has failed does. It returns where the log ends now.
func (f *fixture) lose(h Losing, marked int64) int64 {
	f.Helper()
	shown := f.end()
	f.h.Store = h.Lose(f.T)
	f.setEpoch(f.epoch)
	end := f.end()
	assert.MustTrue(f, end >= marked && end <= shown, "the log ended at %d when it was marked, at %d when it was lost, and ends at %d", marked, shown, end)
	f.sent = f.sent[:len(f.sent)-len(f.from(end))]
	return end
}

func testStoredAfterLoss(f *fixture, h Losing) {
	f.appendMany(4)
	marked := f.mark(h)
	f.appendMany(3)
	f.lose(h, marked)
	f.verify()
	f.setEpoch(f.epoch + 1)
	f.appendMany(3)
	f.flush()
	f.verify()
	f.reopen()
	f.verify()
	f.appendMany(1)
	f.verify()
}

func testEpochEndAfterLoss(f *fixture, h Losing) {
	f.appendMany(2)
	f.setEpoch(f.epoch + 3)
	f.appendMany(2)
	marked := f.mark(h)
	f.appendMany(5)
	end := f.lose(h, marked)
	f.setEpoch(f.epoch + 1)
	first := f.appendBatch(record.PlainTemplate(), rec("after", "the loss")).BaseOffset
	f.verify()
	epochs := f.log.Epochs()
	last := epochs[len(epochs)-1]
	if last.Epoch != f.epoch || last.Start < end || last.Start > first {
		f.Errorf("the log ended at %d, goes on at %d in epoch %d, and tells %v", end, first, f.epoch, epochs)
	}
}

func testHandleAfterLoss(f *fixture, h Losing) {
	f.appendMany(2)
	marked := f.mark(h)
	f.appendMany(2)
	old, was := f.log, f.h.Store
	f.h.Store = h.Lose(f.T)
	if f.h.Store != was {
		f.Skip("handles do not outlive a loss")
	}
	late := func() []byte { return f.build(record.PlainTemplate(), []record.Record{rec("late", "late")}) }
	if _, err := old.Append(f.ctx, late()); err == nil {
		f.Error("an append that builds upon what was lost is stored")
	}
	f.lose(Losing{Lose: func(*testing.T) store.Store { return was }}, marked)
	if _, err := old.Append(f.ctx, late()); err == nil {
		f.Error("an append of a handle that was replaced is stored")
	}
	f.verify()
	f.appendMany(1)
	f.verify()
}

func testProducersAfterLoss(f *fixture, h Losing) {
	ps := producerState{}
	f.appendProduced(ps, 7)
	marked := f.mark(h)
	kept := maps.Clone(ps)
	f.appendProduced(ps, 7)
	f.must(f.log.SaveProducers(f.ctx, ps.list(), f.end()))
	if f.lose(h, marked) != marked {
		f.Skip("the engine kept more than it was asked for")
	}
	f.verifyProducers(kept)
	f.setEpoch(f.epoch + 1)
	f.appendProduced(kept, 4)
	f.verifyProducers(kept)
}

func testLossAfterLoss(f *fixture, h Losing) {
	for range 4 {
		f.appendMany(2)
		marked := f.mark(h)
		f.appendMany(2)
		f.lose(h, marked)
		f.setEpoch(f.epoch + 1)
		f.verify()
	}
	f.appendMany(1)
	f.verify()
}
