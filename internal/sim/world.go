package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"muster/internal/machine"
)

// world is one run.
type world struct {
	seed  uint64
	rand  *rand.Rand
	now   time.Duration // since the run began
	queue queue
	plan  plan
	calm  bool // nothing goes wrong any more
	quiet bool // clients do nothing by themselves any more

	log       *offsetsLog
	brokers   []*broker
	lead      *coordinator // of the newest epoch; may be loading, or gone if nobody leads
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

	copiers   []*copier // that commit offsets in transactions
	positions uint64    // of records of offsets, in the order in which steps make them

	strange  map[string]bool // groups whose assignment was made for another generation
	promises *promises
	seen     Counts
	trace    *trace
}

// start is the time of day at which runs begin.
var start = time.Unix(1_700_000_000, 0).UTC()

func newWorld(seed uint64, tr *trace) *world {
	w := &world{seed: seed, rand: rand.New(rand.NewPCG(seed, 0x6d7573746572)), seen: Counts{}, strange: map[string]bool{}, trace: tr}
	w.plan = newPlan(w.rand)
	w.topics = newTopics(w.plan.topics)
	w.log = newOffsetsLog(w)
	w.promises = newPromises(w)
	for i := range 3 {
		w.brokers = append(w.brokers, &broker{id: i, up: true})
	}
	w.lead = w.startCoordinator(w.brokers[0])
	for i := range w.plan.groups {
		w.addClients(&w.plan.groups[i])
	}
	w.addOthers()
	w.addCopiers()
	w.planFaults()
	return w
}

func (w *world) clock() time.Time { return start.Add(w.now) }

// millis is the time of day as records hold it.
func (w *world) millis() int64 { return w.clock().UnixMilli() }

func (w *world) at(t time.Duration, run func())    { w.queue.push(max(t, w.now), run) }
func (w *world) after(d time.Duration, run func()) { w.queue.push(w.now+d, run) }

// runUntil lets events happen up to a time.
func (w *world) runUntil(t time.Duration) {
	for len(w.queue.items) > 0 && w.queue.items[0].at <= t {
		e, _ := w.queue.pop()
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

// tracing says whether anybody reads the trace; formatting it is slow.
func (w *world) tracing() bool { return w.trace != nil }

func (w *world) tracef(format string, args ...any) {
	if w.trace != nil {
		w.trace.add(fmt.Sprintf("%12s ", w.now.Round(time.Microsecond)) + fmt.Sprintf(format, args...))
	}
}
