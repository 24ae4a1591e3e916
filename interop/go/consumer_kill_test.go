package interop

import (
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"muster/internal/assert"
	"muster/internal/redistest"
)

var (
	reconcileKills = flag.Int("reconciles", 3, "how many brokers TestReconciliationsSurviveKills loses")
	reconcileSeed  = flag.Uint64("reconcile-seed", 1, "the seed of its first group")
)

const (
	reconcileLosses = 5 // losses that one group goes through
	reconcileMost   = 5 // members
)

// TestReconciliationsSurviveKills has members of a consumer group come and go, and
// loses the broker at random moments of what follows: on disk the only one, on Redis
// one of three. After each loss the group settles, no partition has had two owners at
// once, committed offsets never go back, and in the end every record was delivered.
func TestReconciliationsSurviveKills(t *testing.T) {
	onlyOn(t, "disk", "redis")
	keepLogs(t)
	settings := slices.Concat(copySettings, consumerSettings)
	var site copySite
	if storeKind == "disk" {
		site = startDiskSite(t, settings...)
	} else {
		site = fleetSite{startFleet(t, redistest.Single(t).URL(), 3, settings...)}
	}
	states := map[string]int{}
	for seed, left := *reconcileSeed, *reconcileKills; left > 0; seed++ {
		reconcileRound(t, site, seed, min(left, reconcileLosses), states)
		left -= reconcileLosses
		assert.MustFalse(t, t.Failed(), "stopped at seed %d: -reconciles %d -reconcile-seed %d does it again", seed, reconcileLosses, seed)
	}
	t.Logf("when a broker was lost, the group was last seen %v", states)
}

// reconcileRound is the life of one group.
func reconcileRound(t *testing.T, site copySite, seed uint64, losses int, states map[string]int) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 0))
	assignor := []string{"uniform", "range"}[rng.IntN(2)]
	g := newConsumerGroup(t, site.addresses(), fmt.Sprintf("reconcile-%d", seed), "franz-go", assignor, groupPartitions)
	c := &reconcilers{consumerGroup: g, rng: rng}
	for range 3 {
		c.comes()
	}
	g.settles(c.members...)
	s := g.stream()
	began := time.Now()
	for range losses {
		lose := c.loss(t, site)
		what := c.change()
		state := c.moment(what)
		states[state]++
		lost := lose()
		if rng.IntN(4) == 0 { // Before the group has got over it.
			<-time.After(time.Duration(rng.IntN(1000)) * time.Millisecond)
			lost += ", " + site.lose(t, rng)
		}
		since := time.Now()
		g.settles(c.members...)
		t.Logf("%8s %s, %s when %s; settled %s later", time.Since(began).Round(time.Millisecond), what, state, lost, time.Since(since).Round(time.Millisecond))
	}
	s.finish()
	for _, m := range c.members {
		m.leave()
	}
	g.isEmpty()
	g.hasRead()
	records, tenures := g.ledger.counts()
	t.Logf("seed %d, %s: %d losses, %d members, %d records, partitions came to a member %d times", seed, assignor, losses, c.count, records, tenures)
}

// reconcilers are the members of a group that changes.
type reconcilers struct {
	*consumerGroup
	rng     *rand.Rand
	members []*memberProcess // those that stay
	count   int
}

// loss returns what loses a broker: of several mostly the one that coordinates the
// group.
func (c *reconcilers) loss(t *testing.T, site copySite) func() string {
	if f, several := site.(fleetSite); several && c.rng.IntN(4) > 0 {
		coordinator := f.leader("__consumer_offsets", offsetsPartition(c.spec.Group, 50))
		return func() string { return "coordinator, " + f.loseBroker(c.rng, coordinator) }
	}
	return func() string { return site.lose(t, c.rng) }
}

func (c *reconcilers) comes() {
	c.count++
	c.members = append(c.members, c.join(fmt.Sprintf("m%d", c.count)))
}

// goes takes a member out of those that stay.
func (c *reconcilers) goes() *memberProcess {
	i := c.rng.IntN(len(c.members))
	m := c.members[i]
	c.members = slices.Delete(c.members, i, i+1)
	return m
}

const crashes = "one crashes"

// change has members come or go, and says what it did. No one waits for it to be
// over.
func (c *reconcilers) change() string {
	switch n := len(c.members); {
	case n <= 2 || n < reconcileMost && c.rng.IntN(2) == 0:
		c.comes()
		if c.rng.IntN(3) == 0 {
			c.comes()
			return "two join"
		}
		return "one joins"
	case c.rng.IntN(3) == 0:
		c.crash(c.goes())
		return crashes
	case c.rng.IntN(4) == 0:
		c.leaves(c.goes())
		c.comes()
		return "one leaves and one joins"
	default:
		c.leaves(c.goes())
		return "one leaves"
	}
}

// leaves asks a member to leave.
func (c *reconcilers) leaves(m *memberProcess) {
	c.t.Helper()
	if _, err := io.WriteString(m.stdin, "leave\n"); err != nil {
		c.t.Fatalf("member %s: %v\n%s", m.spec.ClientID, err, m)
	}
}

// moment waits until the group is at it, and then for a moment of it. It does not wait
// long, and sometimes not until a member that has crashed is missed. It returns the
// last state that it saw.
func (c *reconcilers) moment(what string) string {
	last, patience := "?", time.Second
	if what == crashes && c.rng.IntN(3) > 0 {
		patience = 10 * time.Second
	}
	for end := time.Now().Add(patience); time.Now().Before(end); {
		if v, err := c.view(); err == nil {
			if last = v.state; last == "Assigning" || last == "Reconciling" {
				break
			}
		}
	}
	// The random moment: this is no wait for anything.
	<-time.After(time.Duration(c.rng.IntN(250_000)) * time.Microsecond)
	return last
}
