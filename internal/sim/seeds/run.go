package seeds

import (
	"fmt"
	"maps"
	"path"
	"reflect"
	"runtime"
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

// Failure is a run that broke a rule, made as short as possible.
type Failure struct {
	Seed uint64
	What string
	// Trace is what happened last.
	Trace string
	// Shrunk says what was left out, if anything could be.
	Shrunk string
	// Replay is the command that has it happen again.
	Replay string
}

// Error says what happened and how to see it again.
func (f *Failure) Error() string {
	out := fmt.Sprintf("%s\n\nseed %d: %s\n", f.Trace, f.Seed, f.What)
	if f.Shrunk != "" {
		out += f.Shrunk + "\n"
	}
	return out + "replay it with: " + f.Replay
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

// one simulates one seed. A failure is shrunk, unless something was left out of it by
// hand, and run once more, to have a trace of its end: most runs have no need of one.
func (s *Simulator) one(test string, seed uint64, c cut, traceLines int) (Counts, *Failure) {
	r := s.run(seed, c, nil)
	if r.broken.Text == "" {
		return r.seen, nil
	}
	f := &Failure{Seed: seed, What: r.broken.Text}
	if c.faults == nil && c.chaos == 0 {
		if x := s.shrink(seed, r); x.cut.faults != nil {
			f.Shrunk = fmt.Sprintf("shrunk from %d events and %d faults to %d and %d, in %d runs", r.events, len(r.faults), x.best.events, len(x.best.faults), x.runs)
			if x.best.broken.Text != r.broken.Text {
				f.Shrunk += "; it was: " + r.broken.Text
			}
			c, f.What = x.cut, x.best.broken.Text
		}
	}
	tr := &trace{keep: traceLines}
	if again := s.run(seed, c, tr); again.broken.Kind != r.broken.Kind {
		f.What += "\n(and in a second run of the same seed: " + again.broken.Text + ")"
	}
	f.Trace, f.Replay = tr.tail(), s.command(test, seed, c)
	return Counts{}, f
}

// command is what replays a run.
func (s *Simulator) command(test string, seed uint64, c cut) string {
	where := runtime.FuncForPC(reflect.ValueOf(s.Simulate).Pointer()).Name()
	where = where[strings.Index(where, "/")+1:]
	dir, file := path.Split(where)
	name, _, _ := strings.Cut(file, ".")
	return fmt.Sprintf("go test ./%s%s -count=1 -run '^%s$' -args -seed %d -n 1%s", dir, name, test, seed, c)
}

// run simulates one seed, without what is cut out of it.
func (s *Simulator) run(seed uint64, c cut, tr *trace) (out result) {
	w := newWorld(seed, s.Salt, c, tr)
	defer func() {
		out.events, out.faults, out.chaos = w.events, w.chosen, w.chaos
		switch v := recover().(type) {
		case nil:
		case Violation:
			out.broken = v
		default:
			out.broken.Kind = "panic: " + withoutNumbers(fmt.Sprint(v))
			out.broken.Text = fmt.Sprintf("panic: %v\n%s", v, debug.Stack())
		}
	}()
	s.Simulate(w)
	return result{seen: w.Seen}
}
