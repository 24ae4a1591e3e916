package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"muster/internal/group"
	"muster/internal/sim/seeds"
)

// plan is what the seed decides before the run begins: the cast, the settings
// and how much goes wrong. Each kind of fault is left out of many runs, because
// faults can also hide one another.
type plan struct {
	config    group.Config
	chaos     time.Duration // how long the first phase takes
	groups    []groupPlan
	consumers []consumerPlan
	roll      time.Duration // of clients from one protocol to the other, on average; 0 if none do
	topics    []int         // partitions of each topic at the start
	faults    faults
	delay     time.Duration // of a message, on average
	append    time.Duration // of an append, on average
	maxBatch  int           // bytes of records in a batch, 0 for any number
	simple    int           // consumers that assign partitions to themselves
	admins    int
	copiers   int  // clients that commit offsets in transactions
	farewell  bool // at the end everybody leaves and all groups are deleted
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
	patient      bool    // session timeouts of which clients need not even half to be back after a load
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
		chaos:  seeds.Uniform(r, 40*time.Second, 140*time.Second),
		delay:  seeds.Uniform(r, time.Millisecond, 40*time.Millisecond),
		append: seeds.Uniform(r, time.Millisecond, 20*time.Millisecond),
		topics: []int{1 + r.IntN(6), r.IntN(5)},
		simple: r.IntN(2), admins: r.IntN(3),
		farewell: r.IntN(4) == 0,
	}
	p.config.InitialDelay = []time.Duration{0, 500 * time.Millisecond, 3 * time.Second}[r.IntN(3)]
	p.config.MaxMetadata = 64
	if r.IntN(6) == 0 {
		p.config.MaxSize = 1 + r.IntN(4)
	}
	p.config.SweepInterval = seeds.Uniform(r, 5*time.Second, 40*time.Second)
	if r.IntN(3) == 0 {
		p.config.OffsetsRetention = seeds.Uniform(r, 10*time.Second, time.Minute)
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
			p.chaos = seeds.Uniform(r, 6*time.Minute, 9*time.Minute)
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
		slow: r.IntN(40) == 0, patient: r.IntN(4) == 0,
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
	d := seeds.Dice{Rand: r}
	return faults{
		cut: d.Share(0.01), duplicate: d.Share(0.03), slow: d.Share(0.02),
		appendFails: d.Share(0.02), appendSlow: d.Share(0.05),
		lateTimer: d.Share(0.4), staleTimer: d.Share(1),
		staleCoordinator: d.Share(0.5), oversized: d.Share(0.1), rogue: d.Share(0.5),
		busy:  d.Share(0.3),
		crash: d.Every(5*time.Second, time.Minute), takeover: d.Every(5*time.Second, time.Minute),
		client: d.Every(5*time.Second, time.Minute), outage: d.Every(20*time.Second, 2*time.Minute),
		topics: d.Every(20*time.Second, time.Minute), settings: d.Every(20*time.Second, time.Minute),
		admin: d.Every(2*time.Second, 15*time.Second), tailLost: d.OneIn(4, 15*time.Second, time.Minute),
		txns: d.Every(2*time.Second, 20*time.Second), lateMarker: d.Share(0.5),
	}
}
