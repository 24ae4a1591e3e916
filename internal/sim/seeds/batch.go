package seeds

import (
	"flag"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// make sim sets the first two.
var (
	firstSeed = flag.Uint64("seed", 1, "the first seed to simulate")
	seedCount = flag.Uint64("n", 0, "how many seeds to simulate; 0 for as many as a test run should")
	tailLines = flag.Int("tail", 150, "how many lines of a failed run to show")
	keepFlag  = flag.String("keep", "", "the faults that happen, separated by commas, or none; without it all do")
	chaosFlag = flag.Duration("chaos", 0, "how long things go wrong; 0 for as long as the seed says")
	hurryFlag = flag.Int("hurry", 1, "so many times earlier comes what happens again and again")
)

const (
	// maxFailures is how many failures end a run: more would say the same.
	maxFailures = 3
	// gcPercent is for many short lives of worlds, all of which is garbage soon: it
	// is collected less often than in programs that must be small.
	gcPercent = 2000
)

// Test simulates seeds on all processors. Each is a run of its own, without
// goroutines.
func (s *Simulator) Test(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(gcPercent))
	c, err := parseCut(*keepFlag, *chaosFlag, *hurryFlag)
	if err != nil {
		t.Fatal(err)
	}
	b := &batch{t: t, s: s, first: *firstSeed, n: *seedCount, cut: c, seen: Counts{}, began: time.Now()}
	if b.n == 0 {
		b.n = s.Default
	}
	b.run()
	t.Logf("%d seeds from %d in %s, %.0f a second", b.done.Load(), b.first, time.Since(b.began).Round(time.Millisecond), b.rate())
	if *seedCount > 1 {
		t.Log("what happened:\n" + b.seen.String())
	}
	if *seedCount == 0 && !t.Failed() {
		for _, what := range b.seen.Lacking(s.Enough, int(b.n)) {
			t.Error(what)
		}
	}
}

// TestSame runs the first seeds twice. The same seed is the same run, or a failure
// could not be looked into.
func (s *Simulator) TestSame(t *testing.T, seeds uint64) {
	for seed := range seeds {
		one, two := &trace{keep: 1}, &trace{keep: 1}
		for _, tr := range []*trace{one, two} {
			if r := s.run(seed, cut{}, tr); r.broken.Text != "" {
				t.Fatalf("seed %d: %s", seed, r.broken.Text)
			}
		}
		if one.hash != two.hash || one.total != two.total {
			t.Errorf("seed %d: %d events, then %d others", seed, one.total, two.total)
		}
	}
}

// TestShrinks is for a simulator with a fault planted in what it simulates: it must find
// that, and make the run shorter that shows it, until only so many things go wrong.
func (s *Simulator) TestShrinks(t *testing.T, most int) {
	for seed := uint64(1); seed <= s.Default; seed++ {
		failed := s.run(seed, cut{}, nil)
		if failed.broken.Text == "" {
			continue
		}
		x := s.shrink(seed, failed)
		t.Logf("seed %d: %s\n%d events and %d faults, shrunk to %d and %d in %d runs", seed, failed.broken.Text, failed.events, len(failed.faults), x.best.events, len(x.best.faults), x.runs)
		if len(x.best.faults) > most || 2*x.best.cost() > failed.cost() {
			t.Errorf("%d events and %d faults are left", x.best.events, len(x.best.faults))
		}
		c, err := parseCut(strings.Fields(x.cut.String())[1], x.cut.chaos, x.cut.hurry)
		if again := s.run(seed, c, nil); err != nil || again.broken.Text != x.best.broken.Text {
			t.Errorf("replayed, it is %q: %v", again.broken.Text, err)
		}
		return
	}
	t.Errorf("the fault was not found in %d seeds", s.Default)
}

// batch simulates seeds.
type batch struct {
	t        *testing.T
	s        *Simulator
	first, n uint64
	cut      cut
	next     atomic.Uint64
	done     atomic.Uint64
	failures atomic.Int32
	began    time.Time

	mu   sync.Mutex
	seen Counts
}

func (b *batch) run() {
	stop := make(chan struct{})
	defer close(stop)
	go b.progress(stop)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(b.work)
	}
	workers.Wait()
}

func (b *batch) work() {
	seen := Counts{}
	for {
		i := b.next.Add(1) - 1
		if i >= b.n || b.failures.Load() >= maxFailures {
			break
		}
		counts, failure := b.s.one(b.t.Name(), b.first+i, b.cut, *tailLines)
		for what, n := range counts {
			seen[what] += n
		}
		if failure != nil {
			b.failures.Add(1)
			b.t.Error(failure)
		}
		b.done.Add(1)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for what, n := range seen {
		b.seen[what] += n
	}
}

func (b *batch) rate() float64 { return float64(b.done.Load()) / time.Since(b.began).Seconds() }

// progress says how far a long run has come.
func (b *batch) progress(stop chan struct{}) {
	tick := time.NewTicker(5 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
			if *seedCount > 0 {
				fmt.Printf("%d of %d seeds, %.0f a second, %d failures\n", b.done.Load(), b.n, b.rate(), b.failures.Load())
			}
		}
	}
}
