package exact

import (
	"fmt"
	"runtime/debug"
)

// Counts says how often each thing happened.
type Counts map[string]int

// Failure is a run that broke a rule.
type Failure struct {
	Seed uint64
	What string
	// Trace is what happened last.
	Trace string
}

// Error says what happened and how to see it again.
func (f *Failure) Error() string {
	return fmt.Sprintf("%s\n\nseed %d: %s\nreplay it with: make sim SEED=%d N=1", f.Trace, f.Seed, f.What, f.Seed)
}

// Run simulates one seed. A failure is run again, to have a trace of its end:
// that is the same run, and most have no need of one.
func Run(seed uint64, traceLines int) (Counts, *Failure) {
	w, what := run(seed, nil)
	if what == "" {
		return w.seen, nil
	}
	tr := &trace{keep: traceLines}
	if _, again := run(seed, tr); again != what {
		what += "\n(and in a second run of the same seed: " + again + ")"
	}
	return Counts{}, &Failure{Seed: seed, What: what, Trace: tr.tail()}
}

// run simulates one seed and says what went wrong, if anything did.
func run(seed uint64, tr *trace) (w *world, what string) {
	defer func() {
		switch v := recover().(type) {
		case nil:
		case violation:
			what = v.text
		default:
			what = fmt.Sprintf("panic: %v\n%s", v, debug.Stack())
		}
	}()
	w = newWorld(seed, tr)
	w.runUntil(w.plan.chaos)
	w.settle()
	return w, ""
}
