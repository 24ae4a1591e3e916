package sim

import (
	"time"

	"muster/internal/machine"
	"muster/internal/sim/seeds"
	"muster/internal/sim/shell"
)

// world is one run.
type world struct {
	*seeds.World
	plan  plan
	plant shell.Plant // a fault of all cores, in tests
	quiet bool        // clients do nothing by themselves any more

	log       *offsetsLog
	brokers   []*broker
	lead      *coordinator // of the newest epoch; may be loading, or gone if no one leads
	alive     []*coordinator
	deposedAt time.Duration
	aim       string // the moment at which something will go wrong
	aimed     func()
	failNext  bool // the next append fails
	ids       machine.RequestID

	steps       uint64        // of all coordinators
	lastArrival time.Duration // of messages sent in the chaotic phase

	clients []*client
	others  []*peer // administrators and simple consumers
	topics  topics

	consumers []*consumer // clients of the consumer protocol
	slots     []*slot     // of clients that change their protocol
	back      bool        // they go back to the classic protocol
	copiers   []*copier   // that commit offsets in transactions
	positions uint64      // of records of offsets, in the order in which steps make them

	strange  map[string]bool // groups whose assignment was made for another generation
	promises *promises
}

// salt tells the chance of this simulator from that of others.
const salt = 0x6d7573746572

// Simulate is one run: things go wrong, and then nothing does, and all must come
// to rest.
func Simulate(base *seeds.World) { run(base, newPlan(base.Rand), nil) }

func run(base *seeds.World, p plan, plant shell.Plant) {
	w := newWorld(base, p, plant)
	w.RunUntil(w.plan.chaos)
	w.settle()
}

func newWorld(base *seeds.World, p plan, plant shell.Plant) *world {
	w := &world{World: base, plan: p, plant: plant, strange: map[string]bool{}}
	w.recast()
	w.topics = newTopics(w.plan.topics)
	w.log = newOffsetsLog(w)
	w.promises = newPromises(w)
	for i := range 3 {
		w.brokers = append(w.brokers, &broker{id: i, up: true})
	}
	w.lead = w.startCoordinator(w.brokers[0])
	for i := range w.plan.groups {
		w.Apart(func() { w.addClients(&w.plan.groups[i]) })
	}
	for i := range w.plan.consumers {
		w.Apart(func() { w.addConsumers(&w.plan.consumers[i]) })
	}
	for _, add := range []func(){w.addSlots, w.addOthers, w.addCopiers, w.planFaults} {
		w.Apart(add)
	}
	return w
}

// recast takes out of the plan what a run that is replayed does without. Processes
// that use either protocol are as many of each.
func (w *world) recast() {
	p := &w.plan
	p.chaos = w.Chaos(p.chaos)
	for i := range p.groups {
		p.groups[i].clients = w.Cast(p.groups[i].clients, 1)
	}
	for i := range p.consumers {
		if g := &p.consumers[i]; p.roll > 0 {
			g.clients = p.groups[i].clients
		} else {
			g.clients = w.Cast(g.clients, 1)
		}
	}
	p.simple, p.admins, p.copiers = w.Cast(p.simple, 0), w.Cast(p.admins, 0), w.Cast(p.copiers, 0)
}

// millis is the time of day as records hold it.
func (w *world) millis() int64 { return w.Clock().UnixMilli() }

// faults returns how much goes wrong now.
func (w *world) faults() *faults {
	if w.Calm {
		return &faults{}
	}
	return &w.plan.faults
}
