package interop

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"muster/internal/assert"
)

var (
	copyRuns = flag.Int("copies", 3, "how many runs TestCopiesSurviveKills does; of losses of a Redis primary a tenth of that")
	copySeed = flag.Uint64("seed", 1, "the seed of the first round of TestCopiesSurviveKills")
)

const (
	copyLanes     = 3  // runs at a time
	copyFailovers = 10 // one loss of a primary for so many runs that are asked for
	// copyPatience is how long after the last loss everything must be copied, and no
	// transaction be open any more.
	copyPatience = time.Minute
)

// TestCopiesSurviveKills copies topics in transactions, with several members of a
// group, while brokers are killed at random moments, and copiers too. On disk there is
// one broker; on Redis there are three, some of which are frozen for longer than
// their lease instead; with replicas of Redis a primary is killed. Whoever reads what is
// committed then finds every record once, and those of a key in order; a minute
// later no transaction is open anywhere.
//
// A round is a few runs with the same brokers and the same losses. It can be done again by
// its seed, as far as moments can.
func TestCopiesSurviveKills(t *testing.T) {
	keepLogs(t)
	site, runs := copySites[storeKind](t), *copyRuns
	if _, ok := site.(failoverSite); ok {
		runs = (runs + copyFailovers - 1) / copyFailovers * copyLanes
	}
	began := time.Now()
	var all copyCounts
	for seed := *copySeed; runs > 0; seed++ {
		counts := copyRound(t, site, seed, min(runs, copyLanes))
		runs -= copyLanes
		all.add(counts)
		t.Logf("seed %d: %s", seed, counts)
		assert.MustFalse(t, t.Failed(), "stopped at seed %d: -copies %d -seed %d does it again", seed, copyLanes, seed)
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
	must(t, err)
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
				t.Errorf("run %s, seed %d (%s): %v", r.name, seed, r.what(), errors.Join(err, r.dump()))
			}
		})
	}
	done.Wait()
	assert.NoError(t, noneOpen(t.Context(), site.addresses(), lost.Add(copyPatience)), "seed %d", seed)
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
