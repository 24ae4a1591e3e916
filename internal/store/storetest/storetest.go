// Package storetest is the contract of package store in the form of tests: one
// suite that every engine passes, and a metamorphic run that does the same
// random operations to two engines and compares what they show.
//
// The suite asks for nothing that the contract leaves to the engine. It
// compares records (key, value, headers, timestamp, order) and the offsets that
// the engine itself gave, never bytes, and never offsets that it computed. It
// accepts gaps between batches, batches that were built anew, and retention and
// compaction that keep more than they must; how much more, the Harness says.
//
// An engine's tests call Run and Metamorphic with a function that opens an
// empty store. The package knows no engine.
package storetest

import (
	"context"
	"testing"

	"muster/internal/store"
)

// Harness is an engine under test. It closes what it opened when the test ends.
type Harness struct {
	// Store is empty.
	Store store.Store
	// Reopen closes the store cleanly and opens it again. It is nil if nothing
	// outlives Close.
	Reopen func(t *testing.T) store.Store
	// Config is what logs are opened with.
	Config store.LogConfig
	// Slack is how many bytes at the end of a log Retain and Compact may leave
	// alone, since the engine drops in units of its own. Negative says that
	// they may do nothing at all.
	Slack int64
	// NoTransactions says that transactional and control batches are refused
	// with ErrInvalidBatch.
	NoTransactions bool
}

// maxSlack is how much a test is willing to append in order to see something
// dropped.
const maxSlack = 64 << 10

// test is one behaviour that the suite demands.
type test struct {
	name string
	run  func(f *fixture)
}

// Run runs the suite. Every test gets a store of its own from open.
func Run(t *testing.T, open func(t *testing.T) Harness) {
	groups := [][]test{
		appendTests, readTests, epochTests, trimTests, retainTests, compactTests,
		timestampTests, producerTests, transactionTests, lifecycleTests, concurrentTests,
	}
	for _, group := range groups {
		for _, test := range group {
			t.Run(test.name, func(t *testing.T) {
				t.Parallel()
				test.run(newFixture(t, open(t)))
			})
		}
	}
}

// many is how often a test does what is the same each time. Samples do it less often.
func many(n int) int {
	if testing.Short() {
		return n / 8
	}
	return n
}

// fixture is a store with one open log, and what was appended to it.
type fixture struct {
	*testing.T
	ctx   context.Context
	h     Harness
	tp    store.TopicPartition
	epoch int32
	log   store.Log
	clock int64 // timestamp of the next record
	sent  []sent
}

func newFixture(t *testing.T, h Harness) *fixture {
	f := &fixture{T: t, ctx: t.Context(), h: h, tp: store.TopicPartition{Topic: "orders", Partition: 3}, epoch: 4, clock: 1_700_000_000_000}
	f.log = f.open(f.epoch)
	return f
}

// open opens the fixture's log under an epoch.
func (f *fixture) open(epoch int32) store.Log {
	f.Helper()
	return f.openLog(f.tp, epoch)
}

func (f *fixture) openLog(tp store.TopicPartition, epoch int32) store.Log {
	f.Helper()
	l, err := f.h.Store.Open(f.ctx, tp, epoch, f.h.Config)
	f.must(err)
	return l
}

// setEpoch opens the log again under another epoch.
func (f *fixture) setEpoch(epoch int32) {
	f.Helper()
	f.log, f.epoch = f.open(epoch), epoch
}

// reopen closes the whole store cleanly and opens it and the log again; the
// test ends here if the engine cannot do that.
func (f *fixture) reopen() {
	f.Helper()
	if f.h.Reopen == nil {
		f.Skip("the engine remembers nothing after Close")
	}
	f.h.Store = f.h.Reopen(f.T)
	f.log = f.open(f.epoch)
}

// needDrops ends the test for engines that need not drop what it appends.
func (f *fixture) needDrops() {
	f.Helper()
	if f.h.Slack < 0 || f.h.Slack > maxSlack {
		f.Skip("the engine may keep all that this test appends")
	}
}

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}
