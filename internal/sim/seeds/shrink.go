package seeds

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// shrinkRuns is how many runs it may take to make a failure shorter. It is a number
// and not a time, so that the same failure is shrunk to the same one.
const shrinkRuns = 300

// result is what came of a run.
type result struct {
	seen   Counts
	broken Violation
	events int
	faults []fault // that have happened, in order
	chaos  time.Duration
}

// cost is how hard a run is to understand. A fault is what must be explained, most
// events are not.
func (r *result) cost() int { return r.events + 10*len(r.faults) }

// shrinker leaves things out of a run as long as the same rule is broken.
type shrinker struct {
	s    *Simulator
	seed uint64
	runs int
	cut  cut
	best result
}

// shrink returns what can be left out of a run that broke a rule, and what is left.
func (s *Simulator) shrink(seed uint64, failed result) *shrinker {
	x := &shrinker{s: s, seed: seed, best: failed}
	x.try(cut{}, nil)
	for before := 0; before != x.best.cost() && x.runs < shrinkRuns; {
		before = x.best.cost()
		x.shorten()
		x.drop()
		x.hurry()
	}
	return x
}

// try makes a run of what a cut leaves, with these faults and no others. It says whether
// that is better.
func (x *shrinker) try(c cut, keep []fault) bool {
	if x.runs >= shrinkRuns {
		return false
	}
	x.runs++
	c.faults = make(map[fault]bool, len(keep))
	for _, f := range keep {
		c.faults[f] = true
	}
	r := x.s.run(x.seed, c, nil)
	if r.broken.Kind != x.best.broken.Kind || r.cost() >= x.best.cost() {
		return false
	}
	x.cut, x.best = c, r
	return true
}

// shorten ends the first phase as early as possible.
func (x *shrinker) shorten() {
	for _, share := range []float64{1. / 2, 1. / 4, 1. / 8, 3. / 4, 7. / 8, 15. / 16} {
		for {
			c := x.cut
			if c.chaos = time.Duration(share * float64(x.best.chaos)); !x.try(c, x.best.faults) {
				break
			}
		}
	}
}

// drop leaves faults out, many at once at first, the last first: what comes before
// them stays as it is.
func (x *shrinker) drop() {
	for size := len(x.best.faults); size > 0; size /= 2 {
		for end := len(x.best.faults); end > 0; end = min(end-size, len(x.best.faults)) {
			x.try(x.cut, slices.Concat(x.best.faults[:max(0, end-size)], x.best.faults[end:]))
		}
	}
}

// hurry has the faults that are left come earlier. They have the same names: those
// do not depend on time.
func (x *shrinker) hurry() {
	for _, times := range []int{16, 4, 2} {
		c := x.cut
		c.hurry = min(max(1, c.hurry)*times, 1024)
		x.try(c, x.best.faults)
	}
}

// String is the cut as the flags of a replay say it.
func (c cut) String() string {
	if c.faults == nil {
		return ""
	}
	names := make([]string, 0, len(c.faults))
	for f := range c.faults {
		names = append(names, strconv.FormatUint(uint64(f), 36))
	}
	slices.Sort(names)
	if len(names) == 0 {
		names = []string{keepNone}
	}
	out := " -keep " + strings.Join(names, ",")
	if c.chaos > 0 {
		out += fmt.Sprintf(" -chaos %s", c.chaos)
	}
	if c.hurry > 1 {
		out += fmt.Sprintf(" -hurry %d", c.hurry)
	}
	return out
}

// keepNone stands for no faults at all.
const keepNone = "none"

// parseCut reads the flags of a replay.
func parseCut(keep string, chaos time.Duration, hurry int) (cut, error) {
	c := cut{chaos: chaos, hurry: hurry}
	if keep == "" {
		return c, nil
	}
	c.faults = map[fault]bool{}
	for name := range strings.SplitSeq(keep, ",") {
		if name == keepNone {
			continue
		}
		f, err := strconv.ParseUint(name, 36, 32)
		if err != nil {
			return c, fmt.Errorf("-keep: %w", err)
		}
		c.faults[fault(f)] = true
	}
	return c, nil
}

// withoutNumbers is a sentence that says the same of others.
func withoutNumbers(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsDigit(r) {
			return '#'
		}
		return r
	}, s)
}
