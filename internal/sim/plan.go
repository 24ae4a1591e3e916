package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"muster/internal/group"
)

// plan is what the seed decides before the run begins: the cast, the settings
// and how much goes wrong. Each kind of fault is left out of many runs, because
// faults can also hide one another.
type plan struct {
	config   group.Config
	chaos    time.Duration // how long the first phase takes
	groups   []groupPlan
	topics   []int // partitions of each topic at the start
	faults   faults
	delay    time.Duration // of a message, on average
	append   time.Duration // of an append, on average
	maxBatch int           // bytes of records in a batch, 0 for any number
	simple   int           // consumers that assign partitions to themselves
	admins   int
	copiers  int  // clients that commit offsets in transactions
	farewell bool // at the end everybody leaves and all groups are deleted
}

// groupPlan is a group and its clients.
type groupPlan struct {
	id           string
	protocolType string
	protocols    []string
	clients      int
	static       float64 // share of static members
	twins        float64 // share of them of whom there are two
	oldest       int16   // version of JoinGroup that clients use, from
	newest       int16   // to
	odd          bool    // some clients know fewer protocols than the others
	slow         bool    // rebalance timeouts of minutes
}

// faults is how often things go wrong: shares of messages and appends, and mean
// times between events, 0 for never.
type faults struct {
	cut, duplicate, slow    float64 // of messages
	appendFails, appendSlow float64 // of appends
	lateTimer, staleTimer   float64 // of timers
	staleCoordinator        float64 // of coordinator look-ups after a takeover
	oversized, rogue        float64 // of commits
	busy                    float64 // of calls to join again or to sync: the client comes late
	crash, takeover         time.Duration
	outage                  time.Duration // of all clients of a group
	tailLost                time.Duration // of the log's last appends
	client                  time.Duration // of one client's life
	topics, settings, admin time.Duration
	txns                    time.Duration // of a copier's life, and of a transaction coordinator's
	lateMarker              float64       // of markers that come once more
}

// maxLate is how late a timer fires at most.
const maxLate = 3 * time.Second

var protocolSets = [][]string{
	{rangeAssignor}, {rangeAssignor, stickyAssignor}, {stickyAssignor, rangeAssignor}, {cooperativeAssignor},
	{cooperativeAssignor, rangeAssignor}, {stickyAssignor},
}

func newPlan(r *rand.Rand) plan {
	p := plan{
		config: group.DefaultConfig(),
		chaos:  uniform(r, 40*time.Second, 140*time.Second),
		delay:  uniform(r, time.Millisecond, 40*time.Millisecond),
		append: uniform(r, time.Millisecond, 20*time.Millisecond),
		topics: []int{1 + r.IntN(6), r.IntN(5)},
		simple: r.IntN(2), admins: r.IntN(3),
		farewell: r.IntN(4) == 0,
	}
	p.config.InitialDelay = []time.Duration{0, 500 * time.Millisecond, 3 * time.Second}[r.IntN(3)]
	p.config.MaxMetadata = 64
	if r.IntN(6) == 0 {
		p.config.MaxSize = 1 + r.IntN(4)
	}
	p.config.SweepInterval = uniform(r, 5*time.Second, 40*time.Second)
	if r.IntN(3) == 0 {
		p.config.OffsetsRetention = uniform(r, 10*time.Second, time.Minute)
	}
	for i := range 1 + r.IntN(3) {
		p.groups = append(p.groups, newGroupPlan(r, i))
	}
	if r.IntN(2) == 0 {
		p.maxBatch = 2200 + r.IntN(2000)
	}
	p.copiers = r.IntN(4)
	p.faults = newFaults(r)
	for i := range p.groups {
		if p.groups[i].slow {
			p.chaos = uniform(r, 6*time.Minute, 9*time.Minute)
			p.faults.client *= 4
			p.faults.busy = 0.5
			p.faults.crash, p.faults.takeover, p.faults.appendFails, p.faults.tailLost = 0, 0, 0, 0
		}
	}
	return p
}

func newGroupPlan(r *rand.Rand, n int) groupPlan {
	g := groupPlan{
		id:           fmt.Sprintf("group-%d", n),
		protocolType: "consumer",
		protocols:    protocolSets[r.IntN(len(protocolSets))],
		clients:      1 + r.IntN(5),
		static:       []float64{0, 0, 0.5, 1}[r.IntN(4)],
		twins:        []float64{0, 0, 0, 0.5}[r.IntN(4)],
		oldest:       0, newest: 9,
		odd:  r.IntN(10) == 0,
		slow: r.IntN(40) == 0,
	}
	if r.IntN(8) == 0 {
		g.protocolType = "connect"
	}
	if r.IntN(2) == 0 {
		g.oldest = int16(r.IntN(10))
		g.newest = min(g.oldest+int16(r.IntN(3)), 9)
	}
	return g
}

func newFaults(r *rand.Rand) faults {
	if r.IntN(12) == 0 {
		return faults{admin: 5 * time.Second, client: 20 * time.Second}
	}
	share := func(most float64) float64 {
		if r.IntN(3) == 0 {
			return 0
		}
		return r.Float64() * most
	}
	every := func(least, most time.Duration) time.Duration {
		if r.IntN(3) == 0 {
			return 0
		}
		return uniform(r, least, most)
	}
	return faults{
		cut: share(0.01), duplicate: share(0.03), slow: share(0.02),
		appendFails: share(0.02), appendSlow: share(0.05),
		lateTimer: share(0.4), staleTimer: share(1),
		staleCoordinator: share(0.5), oversized: share(0.1), rogue: share(0.5),
		busy:  share(0.3),
		crash: every(5*time.Second, time.Minute), takeover: every(5*time.Second, time.Minute),
		client: every(5*time.Second, time.Minute), outage: every(20*time.Second, 2*time.Minute),
		topics: every(20*time.Second, time.Minute), settings: every(20*time.Second, time.Minute),
		admin: every(2*time.Second, 15*time.Second), tailLost: rarely(r, 15*time.Second, time.Minute),
		txns: every(2*time.Second, 20*time.Second), lateMarker: share(0.5),
	}
}

// rarely is a mean time between events that most runs are spared.
func rarely(r *rand.Rand, least, most time.Duration) time.Duration {
	if r.IntN(4) > 0 {
		return 0
	}
	return uniform(r, least, most)
}

func uniform(r *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(r.Int64N(int64(most-least)+1))
}
