package seeds

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// World is one run: its chance, its clock, and what will happen.
type World struct {
	Rand *rand.Rand    // of the event that happens now, and no other
	Now  time.Duration // since the run began
	Calm bool          // nothing goes wrong any more
	Seen Counts

	queue  queue
	trace  *trace
	events int // that have happened
	salt   uint64
	source rand.PCG // under Rand
	cause  cause
	cut    cut
	chosen []fault // in this run, in order
	chaos  time.Duration
}

// Start is the time of day at which runs begin.
var Start = time.Unix(1_700_000_000, 0).UTC()

// newWorld returns the world of a seed, without what is cut out of it. The salt is
// the simulator's own.
func newWorld(seed, salt uint64, c cut, tr *trace) *World {
	w := &World{Seen: Counts{}, trace: tr, salt: salt, cut: c}
	w.Rand = rand.New(&w.source)
	w.enter(cause{id: mix(seed, salt)})
	return w
}

// Clock is the time of day.
func (w *World) Clock() time.Time { return Start.Add(w.Now) }

// At has something happen at a time, now if that is over.
func (w *World) At(t time.Duration, run func()) { w.queue.push(max(t, w.Now), w.next(), run) }

// After has something happen after a while.
func (w *World) After(d time.Duration, run func()) { w.At(w.Now+d, run) }

// RunUntil lets events happen up to a time.
func (w *World) RunUntil(t time.Duration) {
	for len(w.queue.items) > 0 && w.queue.items[0].at <= t {
		e, _ := w.queue.pop()
		w.Now = e.at
		w.events++
		w.within(e.id, e.run)
	}
	w.Now = t
}

// Settle waits until nothing is unsettled any more, which is said in words, for as long
// as that may take.
func (w *World) Settle(patience time.Duration, unsettled func() string) {
	deadline := w.Now + patience
	for why := unsettled(); why != ""; why = unsettled() {
		if w.Now >= deadline {
			w.Violated("after %s of calm: %s", patience, why)
		}
		w.RunUntil(w.Now + 500*time.Millisecond)
	}
}

// Every has something happen again and again until the world is calm, never if the
// mean time between is 0.
func (w *World) Every(mean time.Duration, run func()) {
	if mean == 0 {
		return
	}
	w.After(w.About(mean)/time.Duration(max(1, w.cut.hurry))+time.Millisecond, func() {
		if w.Calm {
			return
		}
		w.Every(mean, run) // First, so that it is the same event whether this one is left out or not.
		if w.happens() {
			run()
		} else {
			w.events--
		}
	})
}

// Chance says yes in a share of cases.
func (w *World) Chance(p float64) bool { return p > 0 && w.Rand.Float64() < p && w.happens() }

// Between returns a duration between two.
func (w *World) Between(least, most time.Duration) time.Duration {
	return Uniform(w.Rand, least, most)
}

// About returns a duration that is d on average, and sometimes much longer.
func (w *World) About(d time.Duration) time.Duration {
	return min(time.Duration(w.Rand.ExpFloat64()*float64(d)), 10*d)
}

// Uniform returns a duration between two, any of them as likely as another.
func Uniform(r *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(r.Int64N(int64(most-least)+1))
}

// Dice are thrown for the plan of a run: how often things go wrong. Each kind of
// fault is left out of many runs, because faults can also hide one another.
type Dice struct{ *rand.Rand }

// Share is a share of cases, of none in a third of runs.
func (d Dice) Share(most float64) float64 {
	if d.IntN(3) == 0 {
		return 0
	}
	return d.Float64() * most
}

// Every is a mean time between events, 0 for never in a third of runs.
func (d Dice) Every(least, most time.Duration) time.Duration {
	if d.IntN(3) == 0 {
		return 0
	}
	return Uniform(d.Rand, least, most)
}

// OneIn is a mean time between events, which all but one in n runs are spared.
func (d Dice) OneIn(n int, least, most time.Duration) time.Duration {
	if d.IntN(n) > 0 {
		return 0
	}
	return Uniform(d.Rand, least, most)
}

// Count notes that something happened.
func (w *World) Count(what string) { w.Seen[what]++ }

// Violation is what a rule that is found broken panics with. Those of the same kind
// differ in names and numbers only.
type Violation struct{ Text, Kind string }

// Violated ends the run: a rule is broken.
func (w *World) Violated(format string, args ...any) {
	kind := format
	for _, a := range args {
		if s, ok := a.(string); ok && strings.Contains(s, " ") { // It is a sentence, and not a name.
			kind += ": " + withoutNumbers(s)
		}
	}
	panic(Violation{fmt.Sprintf(format, args...), kind})
}

// Tracing says whether the trace is read; formatting it is slow.
func (w *World) Tracing() bool { return w.trace != nil }

// Tracef adds a line to the trace.
func (w *World) Tracef(format string, args ...any) {
	if w.trace != nil {
		w.trace.add(fmt.Sprintf("%12s ", w.Now.Round(time.Microsecond)) + fmt.Sprintf(format, args...))
	}
}
