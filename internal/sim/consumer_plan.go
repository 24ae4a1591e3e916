package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"muster/internal/group"
	"muster/internal/sim/seeds"
)

// consumerPlan is a group of the consumer protocol and its clients.
type consumerPlan struct {
	id      string
	clients int
	static  float64 // share of static members
	regex   float64 // of members that subscribe by a regular expression
}

// SimulateConsumers is one run with groups of the consumer protocol (KIP-848), and
// perhaps a classic one beside them.
func SimulateConsumers(base *seeds.World) {
	run(base, newConsumersPlan(base.Rand), nil)
}

// newConsumersPlan is what the seed decides of such a run.
func newConsumersPlan(r *rand.Rand) plan {
	p := newPlan(r)
	if p.groups = p.groups[:r.IntN(4)/3]; len(p.groups) > 0 {
		p.groups[0].slow = false
	}
	p.chaos = seeds.Uniform(r, 30*time.Second, 90*time.Second)
	p.faults = newFaults(r)
	if d := (seeds.Dice{Rand: r}); p.faults.topics > 0 {
		p.faults.busy, p.faults.client = d.Share(0.8), seeds.Uniform(r, 6*time.Second, 40*time.Second)
		p.faults.topics = seeds.Uniform(r, 8*time.Second, 40*time.Second)
	}
	p.config.Consumer.Settings = group.Settings{
		Session:   seeds.Uniform(r, 5*time.Second, 15*time.Second).Truncate(time.Millisecond),
		Heartbeat: seeds.Uniform(r, 700*time.Millisecond, 2*time.Second).Truncate(time.Millisecond),
		Interval:  []time.Duration{0, time.Second, 3 * time.Second}[r.IntN(3)],
	}
	if r.IntN(4) == 0 {
		p.config.Consumer.Session = seeds.Uniform(r, 20*time.Second, 45*time.Second).Truncate(time.Millisecond)
	}
	p.config.Consumer.AtOnce = r.IntN(2) // With one, the assignor always runs as a task.
	if r.IntN(8) == 0 {
		p.config.Consumer.MaxSize = 1 + r.IntN(3)
	}
	if r.IntN(2) == 0 {
		p.config.Consumer.Assignors = []string{"range", "uniform"}
	}
	for i := range 1 + r.IntN(4)/3 {
		p.consumers = append(p.consumers, consumerPlan{
			id: fmt.Sprintf("%s%d", consumersPrefix, i), clients: 1 + r.IntN(4),
			static: []float64{0, 0, 0.5, 1}[r.IntN(4)], regex: []float64{0, 0, 0.3, 1}[r.IntN(4)],
		})
	}
	return p
}

func changeConsumerSettings(r *rand.Rand, cfg *group.Config) {
	cfg.Consumer.MaxSize = group.DefaultConfig().Consumer.MaxSize
	if r.IntN(4) == 0 {
		cfg.Consumer.MaxSize = 1 + r.IntN(3)
	}
	cfg.Consumer.Interval = []time.Duration{0, time.Second}[r.IntN(2)]
}

// The moments of consumer groups at which a fault is likely to do most harm.
const (
	momentRevoking = "revoking" // a member has yet to let go of partitions
	momentReleased = "released" // that it has let go of some is on its way to the log
	momentGranted  = "granted"  // so is that a member is given some
	momentFencing  = "fencing"  // so is that one is fenced
)

var consumerMoments = []string{momentAppend, momentParked, momentMarker, momentReplaced, momentRevoking, momentReleased, momentGranted, momentFencing}
