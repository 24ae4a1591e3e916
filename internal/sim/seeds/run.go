package seeds

import (
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
)

// Counts says how often each thing happened.
type Counts map[string]int

// String lists what was seen, in order.
func (c Counts) String() string {
	var b strings.Builder
	for _, what := range slices.Sorted(maps.Keys(c)) {
		fmt.Fprintf(&b, "%9d %s\n", c[what], what)
	}
	return b.String()
}

// Lacking says what did not happen often enough in a number of seeds, by how often
// it must in 1,000. Of what is rare, a short run proves nothing.
func (c Counts) Lacking(enough Counts, seeds int) []string {
	var out []string
	for _, what := range slices.Sorted(maps.Keys(enough)) {
		if want := enough[what] * seeds / 1000; c[what] < want {
			out = append(out, fmt.Sprintf("%q happened %d times in %d seeds, not %d", what, c[what], seeds, want))
		}
	}
	return out
}

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

// Simulator is one.
type Simulator struct {
	// Salt makes the chance of its seeds its own.
	Salt uint64
	// Simulate is one whole run, in a world that has just begun.
	Simulate func(*World)
	// Default is how many seeds a test run simulates.
	Default uint64
	// Enough is how often things must happen in 1,000 seeds, about a third of how
	// often they do. A simulator in which they do not happen checks nothing.
	Enough Counts
}

// one simulates one seed. A failure is run again, to have a trace of its end:
// that is the same run, and most have no need of one.
func (s *Simulator) one(seed uint64, traceLines int) (Counts, *Failure) {
	seen, what := s.run(seed, nil)
	if what == "" {
		return seen, nil
	}
	tr := &trace{keep: traceLines}
	if _, again := s.run(seed, tr); again != what {
		what += "\n(and in a second run of the same seed: " + again + ")"
	}
	return Counts{}, &Failure{Seed: seed, What: what, Trace: tr.tail()}
}

// run simulates one seed and says what went wrong, if anything did.
func (s *Simulator) run(seed uint64, tr *trace) (seen Counts, what string) {
	defer func() {
		switch v := recover().(type) {
		case nil:
		case Violation:
			what = v.Text
		default:
			what = fmt.Sprintf("panic: %v\n%s", v, debug.Stack())
		}
	}()
	w := newWorld(seed, s.Salt, tr)
	s.Simulate(w)
	return w.Seen, ""
}
