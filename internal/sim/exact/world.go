package exact

import (
	"log/slog"
	"time"

	"muster/internal/machine"
	"muster/internal/metadata"
	"muster/internal/metadata/config"
	"muster/internal/sim/seeds"
	"muster/internal/sim/shell"
)

// world is one run.
type world struct {
	*seeds.World
	plan  plan
	plant shell.Plant // a fault of all cores, in tests
	over  bool        // all has come to rest
	void  bool        // coordinators have lost what they had written, and so what clients were told

	defaults *config.Broker
	images   []*metadata.Image // all there ever were; the last is true
	brokers  []*broker
	store    *simStore
	model    *model
	copiers  []*copier
	txnIDs   []string // all that were ever used
	readers  []*reader
	attempts []*attempt
	ids      machine.RequestID
	nextPID  int64
	topics   int           // that there ever were
	removed  time.Duration // when the side topic was removed last
	// firstEpoch is that under which new topics are led. It is above those of all
	// that were removed, or a broker that has not heard of that could take the logs
	// of the next topic for its own.
	firstEpoch int32
	inputs     []int64 // how many input records there are, of each partition

	quiet *slog.Logger
}

// maxSkew is how wrong clocks are at most.
const maxSkew = time.Second

// salt tells the chance of this simulator from that of others.
const salt = 0x65786163746c79

// Simulate is one run: things go wrong, and then nothing does, and all must come
// to rest.
func Simulate(base *seeds.World) { run(base, false, nil) }

func run(base *seeds.World, tails bool, plant shell.Plant) {
	w := newWorld(base, tails, plant)
	w.RunUntil(w.plan.chaos)
	w.settle()
}

func newWorld(base *seeds.World, tails bool, plant shell.Plant) *world {
	w := &world{
		World: base, plant: plant, nextPID: 1000, firstEpoch: 1,
		quiet: slog.New(slog.DiscardHandler),
	}
	w.plan = newPlan(w.Rand)
	if tails {
		w.plan.loseTails(w.Rand)
	}
	w.recast()
	w.model = newModel(w)
	w.store = newSimStore(w)
	w.firstImage()
	w.prefill()
	for i := range brokerCount {
		b := &broker{w: w, id: int32(i)}
		if w.plan.skewed {
			b.skew = w.Between(-maxSkew, maxSkew)
		}
		w.brokers = append(w.brokers, b)
	}
	for _, b := range w.brokers {
		b.boot()
	}
	w.Apart(w.addClients)
	w.Apart(w.planFaults)
	return w
}

// recast takes out of the plan what a run that is replayed does without. A group that
// shares partitions keeps one member.
func (w *world) recast() {
	p := &w.plan
	p.chaos = w.Chaos(p.chaos)
	p.copiers = p.copiers[:w.Cast(len(p.copiers), 1)]
	p.team.workers = p.team.workers[:w.Cast(len(p.team.workers), 1)]
}

// faults returns how much goes wrong now.
func (w *world) faults() *faults {
	if w.Calm {
		return &faults{}
	}
	return &w.plan.faults
}

// judge is for rules that hold as long as no log has lost anything.
func (w *world) judge(format string, args ...any) {
	if !w.void {
		w.Violated(format, args...)
	}
}
