package interop

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"
)

var (
	copyRuns = flag.Int("copies", 3, "how many runs TestCopiesSurviveKills does; of losses of the Redis primary a tenth of that")
	copySeed = flag.Uint64("seed", 1, "the seed of the first round of TestCopiesSurviveKills")
)

const (
	copyLanes     = 3  // runs at a time
	copyFailovers = 10 // one loss of the primary for so many runs that are asked for
	// copyPatience is how long after the last loss everything must be copied, and no
	// transaction be open any more.
	copyPatience = time.Minute
)

// TestCopiesSurviveKills copies topics in transactions, with several members of a
// group, while brokers are killed at random moments, and copiers too. On disk there is
// one broker; on Redis there are three, some of which are frozen for longer than
// their lease instead; under Sentinel the primary is killed. Whoever reads what is
// committed then finds every record once, and those of a key in order; a minute
// later no transaction is open anywhere.
//
// A round is a few runs with the same brokers and the same losses. It can be done again by
// its seed, as far as moments can.
func TestCopiesSurviveKills(t *testing.T) {
	onlyOn(t, "disk", "redis", "redis-sentinel")
	keepLogs(t)
	site, rounds := copySites[storeKind](t), (*copyRuns+copyLanes-1)/copyLanes
	if storeKind == "redis-sentinel" {
		rounds = (*copyRuns + copyFailovers - 1) / copyFailovers
	}
	began := time.Now()
	var all copyCounts
	for n := range rounds {
		lanes := copyLanes
		if storeKind != "redis-sentinel" {
			lanes = min(lanes, *copyRuns-n*copyLanes)
		}
		counts := copyRound(t, site, *copySeed+uint64(n), lanes)
		all.add(counts)
		t.Logf("round %d of %d, seed %d: %s", n+1, rounds, *copySeed+uint64(n), counts)
		if t.Failed() {
			t.Fatalf("stopped at seed %d: -copies %d -seed %d does it again", *copySeed+uint64(n), copyLanes, *copySeed+uint64(n))
		}
	}
	t.Logf("all in %s: %s", time.Since(began).Round(time.Second), all)
}

// keepLogs has the logs of brokers and copiers written to files, which stay if the
// test fails.
func keepLogs(t *testing.T) {
	t.Helper()
	if os.Getenv("INTEROP_LOGS") != "" {
		return
	}
	dir, err := os.MkdirTemp("", "muster-copies-")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("INTEROP_LOGS", dir)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the logs are in %s", dir)
			return
		}
		_ = os.RemoveAll(dir)
	})
}

// copyCounts is what happened in a round, or in all.
type copyCounts struct {
	runs, losses, records, commits, aborts, killed, failed int
	calm                                                   time.Duration // the longest time after the last loss until all was well
}

func (c *copyCounts) add(o copyCounts) {
	c.runs, c.losses, c.records = c.runs+o.runs, c.losses+o.losses, c.records+o.records
	c.commits, c.aborts, c.killed, c.failed = c.commits+o.commits, c.aborts+o.aborts, c.killed+o.killed, c.failed+o.failed
	c.calm = max(c.calm, o.calm)
}

func (c copyCounts) String() string {
	return fmt.Sprintf("%d runs, %d losses, %d records, %d transactions committed, %d aborted, %d copiers killed, %d gave up; all was well %s after the last loss",
		c.runs, c.losses, c.records, c.commits, c.aborts, c.killed, c.failed, c.calm.Round(10*time.Millisecond))
}

// copyRound does some runs at a time, and fails the test if one of them does.
func copyRound(t *testing.T, site copySite, seed uint64, lanes int) copyCounts {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 0))
	began := time.Now()
	runs := make([]*copyRun, lanes)
	for i := range runs {
		runs[i] = startCopyRun(t, site.addresses(), seed, i)
	}
	counts := copyCounts{runs: lanes}
	for range site.losses(rng) {
		// Some come while the last is still felt.
		if rng.IntN(3) > 0 {
			r := runs[rng.IntN(lanes)]
			waitFor(t, "run "+r.name+" to go on copying", r.grown(1+rng.IntN(20)))
		}
		<-time.After(time.Duration(rng.IntN(400)) * time.Millisecond) // The random moment: this is no wait for anything.
		t.Logf("%8s %s", time.Since(began).Round(time.Millisecond), site.lose(t, rng))
		counts.losses++
	}
	lost := time.Now()
	var done sync.WaitGroup
	for _, r := range runs {
		done.Go(func() {
			if err := r.finish(lost.Add(copyPatience)); err != nil {
				t.Errorf("run %s, seed %d (%s): %v", r.name, seed, r.what(), err)
			}
		})
	}
	done.Wait()
	if err := noneOpen(t.Context(), site.addresses(), lost.Add(copyPatience)); err != nil {
		t.Errorf("seed %d: %v", seed, err)
	}
	counts.calm = time.Since(lost)
	for _, r := range runs {
		counts.add(r.counted())
		if n := r.counted().failed; n > 0 {
			t.Logf("         run %s: %s", r.name, r.what())
		}
		if !t.Failed() {
			r.remove()
		}
	}
	return counts
}
