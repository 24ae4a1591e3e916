package interop

import (
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"muster/internal/assert"
	"muster/internal/redistest"
)

const drainTopic = "drained"

// TestBrokersAreDrainedStoppedAndStartedUnnoticed rolls three brokers on one Redis, each
// drained before it is stopped, while two idempotent producers and two groups go on.
// Nothing is lost or there twice, committed offsets never go back, and no group
// rebalances.
func TestBrokersAreDrainedStoppedAndStartedUnnoticed(t *testing.T) {
	onlyOn(t, "redis")
	f := startFleet(t, redistest.Single(t).URL(), 3)
	createTopic(t, f.addrs[0], drainTopic, groupPartitions)
	w := startFleetWriters(t, f, drainTopic)
	groups := f.groups("drain-", drainTopic)
	commits := newCommitLog()
	for victim := range f.brokers {
		was := map[*liveGroup][]int{}
		for _, g := range groups {
			was[g] = historyLengths(g.all)
		}
		f.command(victim, "drain", strconv.Itoa(victim+1))
		f.leadsNothing(victim)
		commitOn(t, groups, w)
		f.checkCommits(groups, commits)
		must(t, f.brokers[victim].terminate())
		goOn(t, time.Now(), groups, w)
		f.start(victim)
		f.hasAll()
		f.leadsNothing(victim)
		f.command(victim, "undrain", strconv.Itoa(victim+1))
		goOn(t, time.Now(), groups, w)
		for _, g := range groups {
			if now := historyLengths(g.all); !slices.Equal(now, was[g]) {
				t.Errorf("broker %d: %s has rebalanced: %v events of its members, then %v", victim+1, g.spec.Group, was[g], now)
			}
		}
	}
	ends := w.finish()
	for _, g := range groups {
		g.reads(ends)
		g.commits(ends)
	}
	assert.NoError(t, commits.failed())
	w.history.check(t, f.client(), drainTopic)
	t.Logf("%d records acknowledged", w.history.count())
}

// commitOn waits until every group has committed records of every partition that were
// written after now: its members have found their coordinator.
func commitOn(t *testing.T, groups []*liveGroup, w *fleetWriters) {
	t.Helper()
	last := w.history.last()
	for _, g := range groups {
		waitFor(t, g.spec.Group+" to commit", func() error {
			committed, err := g.committed()
			for p, n := range last {
				if err == nil && committed[p] <= int64(n) {
					err = fmt.Errorf("partition %d: committed %d, %d were written", p, committed[p], n)
				}
			}
			return err
		})
	}
}

// command runs muster brokers, at any broker.
func (f *fleet) command(at int, args ...string) {
	f.t.Helper()
	out, err := exec.CommandContext(f.t.Context(), musterPath, append([]string{"brokers", "-b", f.addrs[(at+1)%len(f.addrs)]}, args...)...).CombinedOutput()
	f.t.Logf("muster brokers %s: %s", strings.Join(args, " "), out)
	must(f.t, err)
}

// leadsNothing checks that a broker leads no partition.
func (f *fleet) leadsNothing(broker int) {
	f.t.Helper()
	m, err := f.admin.Metadata(f.t.Context())
	must(f.t, err)
	for _, topic := range m.Topics {
		for _, p := range topic.Partitions {
			assert.True(f.t, p.Leader != int32(broker+1), "broker %d is drained and leads %s-%d", broker+1, p.Topic, p.Partition)
		}
	}
}
