package exact

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"muster/internal/machine"
	"muster/internal/metadata"
	"muster/internal/metadata/config"
)

// world is one run.
type world struct {
	seed  uint64
	rand  *rand.Rand
	now   time.Duration // since the run began
	queue queue
	plan  plan
	calm  bool // nothing goes wrong any more
	over  bool // all has come to rest

	defaults *config.Broker
	images   []*metadata.Image // all there ever were; the last is true
	brokers  []*broker
	store    *simStore
	model    *model
	copiers  []*copier
	readers  []*reader
	attempts []*attempt
	ids      machine.RequestID
	nextPID  int64
	inputs   []int64 // how many input records there are, of each partition

	seen  Counts
	trace *trace
	quiet *slog.Logger
}

// maxSkew is how wrong clocks are at most.
const maxSkew = time.Second

// start is the time of day at which runs begin.
var start = time.Unix(1_700_000_000, 0).UTC()

func newWorld(seed uint64, tr *trace) *world {
	w := &world{
		seed: seed, rand: rand.New(rand.NewPCG(seed, 0x65786163746c79)), seen: Counts{}, trace: tr, nextPID: 1000,
		quiet: slog.New(slog.DiscardHandler),
	}
	w.plan = newPlan(w.rand)
	w.model = newModel(w)
	w.store = newSimStore(w)
	w.firstImage()
	w.prefill()
	for i := range brokerCount {
		b := &broker{w: w, id: int32(i)}
		if w.plan.skewed {
			b.skew = w.between(-maxSkew, maxSkew)
		}
		w.brokers = append(w.brokers, b)
	}
	for _, b := range w.brokers {
		b.boot()
	}
	w.addClients()
	w.planFaults()
	return w
}

func (w *world) clock() time.Time { return start.Add(w.now) }

func (w *world) at(t time.Duration, run func())    { w.queue.add(max(t, w.now), run) }
func (w *world) after(d time.Duration, run func()) { w.queue.add(w.now+d, run) }

// runUntil lets events happen up to a time.
func (w *world) runUntil(t time.Duration) {
	for w.queue.Len() > 0 && w.queue.items[0].at <= t {
		e := w.queue.next()
		w.now = e.at
		e.run()
	}
	w.now = t
}

func (w *world) chance(p float64) bool { return p > 0 && w.rand.Float64() < p }

func (w *world) between(least, most time.Duration) time.Duration {
	return uniform(w.rand, least, most)
}

// about returns a duration that is d on average, and sometimes much longer.
func (w *world) about(d time.Duration) time.Duration {
	return min(time.Duration(w.rand.ExpFloat64()*float64(d)), 10*d)
}

// faults returns how much goes wrong now.
func (w *world) faults() *faults {
	if w.calm {
		return &faults{}
	}
	return &w.plan.faults
}

// every has something happen again and again in the chaotic phase.
func (w *world) every(mean time.Duration, run func()) {
	if mean == 0 {
		return
	}
	w.after(w.about(mean)+time.Millisecond, func() {
		if !w.calm {
			run()
			w.every(mean, run)
		}
	})
}

func (w *world) count(what string) { w.seen[what]++ }

// violation is what a checker panics with.
type violation struct{ text string }

func (w *world) violated(format string, args ...any) {
	panic(violation{fmt.Sprintf(format, args...)})
}

func (w *world) tracing() bool { return w.trace != nil }

func (w *world) tracef(format string, args ...any) {
	if w.trace != nil {
		w.trace.add(fmt.Sprintf("%12s ", w.now.Round(time.Microsecond)) + fmt.Sprintf(format, args...))
	}
}
