package exact

import (
	"math/rand/v2"
	"time"

	"muster/internal/sim/seeds"
)

// plan is what the seed decides before the run begins: the cast, the settings
// and how much goes wrong. Each kind of fault is left out of many runs, because
// faults can also hide one another.
type plan struct {
	chaos     time.Duration // how long the first phase takes
	skewed    bool          // clocks differ
	pipelined bool          // the store is far away, as Redis is; else it is a disk
	outputs   int32         // partitions of the output topic
	states    int32         // of __transaction_state
	offsets   int32         // of __consumer_offsets
	sides     int32         // of the side topic, which comes and goes
	retention time.Duration // of the side topic, 0 for ever
	copiers   []copierPlan
	team      teamPlan
	expiry    expiryPlan
	delay     time.Duration // of a message, on average
	append    time.Duration // of an append or a sync, on average
	input     time.Duration // from one input record to the next
	sweep     time.Duration // how often coordinators look for transactions that take too long
	faults    faults
	tails     tailPlan
}

// copierPlan is a program that copies an input partition.
type copierPlan struct {
	tv2      bool
	switches bool // each instance chooses its version anew
	deserts  bool // it ends for good some day
	worn     bool // its producer epoch is near its end
	fresh    bool // each instance has a transactional id of its own
	timeout  time.Duration
	aborts   float64 // share of transactions that it aborts by itself
}

// teamPlan is a group whose members share input partitions.
type teamPlan struct {
	workers  []copierPlan
	shared   int32 // input partitions
	session  time.Duration
	rejoin   time.Duration // the rebalance timeout
	initial  time.Duration // group.initial.rebalance.delay.ms
	static   bool
	careless float64 // share of transactions that go on though the group rebalances
	hasty    float64 // share of rebalances in which members join at once, before their transaction has ended
}

// expiryPlan is after which time of rest things are forgotten, 0 for never.
type expiryPlan struct {
	ids       time.Duration // transactional.id.expiration.ms
	sweep     time.Duration // how often coordinators look for such ids
	producers time.Duration // producer.id.expiration.ms
}

func newExpiryPlan(r *rand.Rand) (e expiryPlan) {
	if r.IntN(2) == 0 {
		e.ids, e.sweep = seeds.Uniform(r, time.Second, 10*time.Second), seeds.Uniform(r, time.Second, 4*time.Second)
	}
	if r.IntN(4) == 0 {
		e.producers = seeds.Uniform(r, longestDelay, longestDelay+5*time.Second)
	}
	return e
}

// faults is how often things go wrong: shares of messages and appends, and mean
// times between events, 0 for never.
type faults struct {
	drop, duplicate, slow   float64 // of messages
	appendFails, appendSlow float64 // of appends and syncs
	lateTimer               float64
	stale                   float64 // of look-ups of a leader
	crash, move, frozen     time.Duration
	client                  time.Duration // of one client's life
	compact                 time.Duration
	remove                  time.Duration // of the side topic
	trim                    time.Duration // of a log's start
	loss                    time.Duration // of the end of what coordinators have written
	admin                   time.Duration
}

func newPlan(r *rand.Rand) plan {
	p := plan{
		chaos:     seeds.Uniform(r, 20*time.Second, 60*time.Second),
		pipelined: r.IntN(2) == 0, skewed: r.IntN(3) == 0,
		outputs: 1 + r.Int32N(3), states: 1 + r.Int32N(2), offsets: 1 + r.Int32N(2),
		delay:  seeds.Uniform(r, time.Millisecond, 30*time.Millisecond),
		append: seeds.Uniform(r, time.Millisecond, 20*time.Millisecond),
		input:  seeds.Uniform(r, 100*time.Millisecond, time.Second),
		sweep:  seeds.Uniform(r, time.Second, 10*time.Second),
		sides:  1 + r.Int32N(2),
	}
	if r.IntN(2) == 0 {
		p.retention = seeds.Uniform(r, 3*time.Second, 20*time.Second)
	}
	for range 1 + r.IntN(3) {
		p.copiers = append(p.copiers, newCopierPlan(r))
	}
	if r.IntN(2) == 0 {
		p.team = newTeamPlan(r)
	}
	p.faults, p.tails = newFaults(r), tailPlan{servers: 1}
	if p.expiry = newExpiryPlan(r); p.expiry.producers > 0 {
		p.chaos += longestDelay
	}
	if p.expiry.ids > 0 { // An id that expires while its owner waits for a rebalance is never used.
		p.expiry.ids = max(p.expiry.ids, p.team.session+p.team.rejoin)
	}
	return p
}

func newCopierPlan(r *rand.Rand) copierPlan {
	return copierPlan{
		tv2: r.IntN(2) == 0, switches: r.IntN(6) == 0, deserts: r.IntN(5) == 0, worn: r.IntN(4) == 0,
		timeout: seeds.Uniform(r, time.Second, 12*time.Second),
		aborts:  []float64{0, 0.1, 0.5}[r.IntN(3)],
	}
}

func newTeamPlan(r *rand.Rand) teamPlan {
	t := teamPlan{
		shared:   1 + r.Int32N(3),
		session:  seeds.Uniform(r, time.Second, 5*time.Second),
		rejoin:   seeds.Uniform(r, 2*time.Second, 8*time.Second),
		initial:  []time.Duration{0, 300 * time.Millisecond}[r.IntN(2)],
		static:   r.IntN(3) == 0,
		careless: r.Float64(), hasty: r.Float64(),
	}
	for range 1 + r.IntN(3) {
		c := newCopierPlan(r)
		c.worn, c.fresh = false, r.IntN(2) == 0
		c.deserts = c.deserts && len(t.workers) > 0 // Someone must stay.
		t.workers = append(t.workers, c)
	}
	return t
}

func newFaults(r *rand.Rand) faults {
	if r.IntN(12) == 0 {
		return faults{client: 20 * time.Second, admin: 5 * time.Second}
	}
	d := seeds.Dice{Rand: r}
	return faults{
		drop: d.Share(0.03), duplicate: d.Share(0.08), slow: d.Share(0.05),
		appendFails: d.Share(0.02), appendSlow: d.Share(0.05), lateTimer: d.Share(0.3), stale: d.Share(0.3),
		crash: d.Every(4*time.Second, 40*time.Second), move: d.Every(2*time.Second, 20*time.Second),
		client: d.Every(2*time.Second, 20*time.Second), frozen: d.Every(5*time.Second, 30*time.Second),
		loss:   d.OneIn(10, 10*time.Second, 40*time.Second),
		remove: d.Every(5*time.Second, 20*time.Second), trim: d.Every(time.Second, 10*time.Second),
		compact: d.Every(3*time.Second, 20*time.Second), admin: d.Every(2*time.Second, 15*time.Second),
	}
}
