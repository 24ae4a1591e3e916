package broker_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"muster/internal/broker"
	"muster/internal/web"
)

// What the books say that a broker must say.

// When a partition is stuck, by docs/http.md.
const (
	stuckFor    = 5 * time.Minute
	fetchWithin = time.Minute
)

// about says whether a time has passed: yes, no, or both are right, since a look comes
// within an interval, and a machine may be slow.
func about(passed, limit time.Duration) (may, must bool) {
	return passed >= limit-2*interval, passed >= limit+2*interval
}

// verdicts returns what may be said of a group in a partition.
func (g *groupBook) verdicts(s spot, l *logBook, now time.Time) []string {
	p := g.places[s]
	var out []string
	if !p.back.IsZero() {
		may, must := about(now.Sub(p.back), stuckFor)
		if !may {
			return []string{"rewound"}
		}
		if !must {
			out = append(out, "rewound")
		}
	}
	n, first := l.unread(p.committed)
	if n == 0 || l.open >= 0 && first.offset >= l.open {
		return append(out, "")
	}
	stood := now.Sub(later(p.changed, p.lagging))
	may, _ := about(stood, stuckFor)
	_, must := about(stood, max(stuckFor, 5*p.longest))
	if !must || first.quiet {
		out = append(out, "")
	}
	if !may {
		return out
	}
	return append(out, g.reasons(p, now)...)
}

// reasons returns why a partition stands still.
func (g *groupBook) reasons(p *placeBook, now time.Time) (out []string) {
	old, must := about(now.Sub(p.committedAt), stuckFor)
	_, certain := about(now.Sub(p.committedAt), max(stuckFor, 5*p.longest))
	must = must && certain
	switch {
	case g.members == 0:
		return []string{"stopped"}
	case p.owner == ownerless:
		return []string{"no-owner"}
	case p.owner == owned:
		lately, long := about(now.Sub(p.fetched), fetchWithin)
		if p.fetched.IsZero() {
			lately, long = true, true
		}
		if lately {
			out = append(out, "not-fetching")
		}
		if long && !p.fetches {
			return out
		}
	}
	if !must {
		out = append(out, "stalled")
	}
	if old && p.owner == owned {
		out = append(out, "not-committing")
	} else if old {
		out = append(out, "stopped")
	}
	return out
}

// onward says whether the group may, and must, count as one that someone reads for.
func (g *groupBook) onward(now time.Time) (may, must bool) {
	for _, p := range g.places {
		if p.onward.IsZero() {
			continue
		}
		over, _ := about(now.Sub(p.onward), stuckFor)
		_, gone := about(now.Sub(p.onward), max(stuckFor, 5*p.longest))
		may, must = may || !gone, must || !over
	}
	return may, must
}

// rates returns between which bounds the records of a second are that were consumed and
// produced over the last minutes.
func (g *groupBook) rates(now time.Time) (consumed, produced [2]float64) {
	for i, window := range []time.Duration{4 * time.Minute, 5 * time.Minute, 6 * time.Minute} {
		var c, p, lost int64
		for _, s := range g.steps {
			if now.Sub(s.at) < window {
				c, p, lost = c+s.consumed, p+s.produced, lost+s.lost
			}
		}
		over := min(window, now.Sub(g.since)).Seconds()
		rate := [2]float64{float64(c) / over, float64(p) / over}
		if i == 0 {
			consumed, produced = [2]float64{rate[0], rate[0]}, [2]float64{rate[1], rate[1]}
		}
		consumed = [2]float64{min(consumed[0], rate[0]), max(consumed[1], float64(c+lost)/over)}
		produced = [2]float64{min(produced[0], rate[1]), max(produced[1], rate[1])}
	}
	return consumed, produced
}

// compare says where a broker errs, of lag, and of all that follows from time.
func (b *books) compare(t *testing.T, of *broker.Broker, whole bool) error {
	t.Helper()
	now := b.clock.now()
	var errs []error
	rows := map[string]web.GroupRow{}
	for _, row := range answer[web.GroupList](t, of, "/groups?limit=1000").Groups {
		rows[row.Name] = row
	}
	for name, g := range b.groups {
		d := answer[web.GroupDetail](t, of, "/groups/"+name)
		x := &comparison{b: b, g: g, now: now, d: &d, whole: whole}
		x.partitions()
		x.total(rows[name])
		for _, err := range x.errs {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

// comparison is of one group.
type comparison struct {
	b       *books
	g       *groupBook
	now     time.Time
	d       *web.GroupDetail
	whole   bool
	lag     int64
	seconds float64
	least   float64 // Of seconds, if what no one reads does not count.
	sure    bool    // There is something that someone will read.
	errs    []error
}

func (x *comparison) wrong(format string, args ...any) {
	x.errs = append(x.errs, fmt.Errorf(format, args...))
}

func (x *comparison) partitions() {
	met := map[spot]bool{}
	for i := range x.d.Partitions {
		p := &x.d.Partitions[i]
		s := spot{p.Topic, p.Partition}
		place, l := x.g.places[s], x.b.logs[s]
		if place == nil {
			if p.Committed != nil {
				x.wrong("%v has a committed offset %d", s, *p.Committed)
			}
			continue
		}
		met[s] = true
		n, first := l.unread(place.committed)
		if p.Committed == nil || int64(*p.Committed) != place.committed || p.Lag == nil || *p.Lag != n || p.LagAtLeast {
			x.wrong("%v: %s, want %d of lag after %d", s, show(p), n, place.committed)
			continue
		}
		x.lag += n
		age := 0.0
		if n > 0 {
			age = max(x.now.Sub(first.at).Seconds(), 0)
		}
		least := 0.0
		if w, found := l.surely(place.committed); found {
			x.sure, least = true, max(x.now.Sub(w.at).Seconds(), 0)
			// After a restart a record is as old as it says, which can be older than those before it.
			least, age = min(least, age), max(least, age)
		}
		x.seconds, x.least = max(x.seconds, age), max(x.least, least)
		if !x.whole {
			continue
		}
		if p.LagSeconds == nil || !near(*p.LagSeconds, least, age, n) {
			x.wrong("%v: %s, the first unread record (%d) is %.1f s old", s, show(p), first.offset, age)
		}
		if want := x.g.verdicts(s, l, x.now); !slices.Contains(want, p.Verdict) {
			x.wrong("%v: %s, verdict want one of %q; %+v", s, show(p), want, *place)
		}
	}
	for s := range x.g.places {
		if !met[s] {
			x.wrong("%v is not there", s)
		}
	}
}

// near says whether an age is right within two intervals.
func near(got, least, most float64, lag int64) bool {
	if lag == 0 {
		return got == 0
	}
	return got >= least-(2*interval).Seconds() && got <= most+(2*interval).Seconds()
}

func (x *comparison) total(row web.GroupRow) {
	d := x.d
	if d.TotalLag == nil || *d.TotalLag != x.lag || d.Watched == nil || d.Watched.Lag != x.lag || d.Watched.LagUnknown || row.Lag != x.lag || row.LagUnknown || row.LagApproximate {
		x.wrong("lag %d in all: %+v, watched %+v, row %+v", x.lag, d.TotalLag, d.Watched, row)
		return
	}
	if !x.whole {
		return
	}
	if len(d.Members) != x.g.members || row.Members != x.g.members {
		x.wrong("%d members, and %d in the list, want %d", len(d.Members), row.Members, x.g.members)
	}
	if !near(d.Watched.LagSeconds, x.least, x.seconds, x.lag) || row.LagSeconds != d.Watched.LagSeconds {
		x.wrong("%.1f s, and %.1f s in the list, want %.1f s", d.Watched.LagSeconds, row.LagSeconds, x.seconds)
	}
	stuck := 0
	for i := range d.Partitions {
		if slices.Contains([]string{"no-owner", "not-fetching", "not-committing", "stalled"}, d.Partitions[i].Verdict) {
			stuck++
		}
	}
	if row.Stuck != stuck || d.Watched.Stuck != stuck || slices.Contains(row.Findings, "stuck-partition") != (stuck > 0) {
		x.wrong("%d partitions are stuck: %+v", stuck, row)
	}
	lonely, told := x.g.members == 0 && x.lag > 0, slices.Contains(row.Findings, "lag-without-members")
	may, must := x.g.onward(x.now)
	if told && (!lonely || must && x.g.name == "outside") || lonely && !told && !may && x.sure {
		x.wrong("lag %d, %d members: %v", x.lag, x.g.members, row.Findings)
	}
	x.catchUp()
}

// catchUp compares when the group will have read everything.
func (x *comparison) catchUp() {
	w := x.d.Watched
	consumed, produced := x.g.rates(x.now)
	short := x.now.Sub(x.g.since) < 2*time.Minute
	switch {
	case x.lag == 0:
		if w.CatchUp != "caught-up" {
			x.wrong("without lag: %+v", w)
		}
	case !x.sure && w.CatchUp == "caught-up":
	case w.CatchUp == "unknown":
		if !short {
			x.wrong("nothing is known after %v: %+v", x.now.Sub(x.g.since), w)
		}
	case short, x.g.wentBack(x.now):
	case w.CatchUp == "catching":
		seconds := *w.CatchUpSeconds
		fastest, slowest := 1.1*consumed[1]-0.9*produced[0], 0.9*consumed[0]-1.1*produced[1] // Minutes count in part.
		if fastest <= 0 || seconds < float64(x.lag)/fastest/1.5 || slowest > 0 && seconds > 1.5*float64(x.lag)/slowest {
			x.wrong("lag %d, consumed %v and produced %v a second, catches up in %v s", x.lag, consumed, produced, seconds)
		}
	case w.CatchUp == "not-catching":
		if 0.9*consumed[0] > 1.2*produced[1] {
			x.wrong("consumed %v and produced %v a second, and does not catch up", consumed, produced)
		}
	default:
		x.wrong("lag %d: %+v", x.lag, w)
	}
}

// wentBack says whether the group went back while rates were taken: then no one can tell
// from its lag how much came meanwhile, where offsets have gaps.
func (g *groupBook) wentBack(now time.Time) bool {
	for _, p := range g.places {
		if !p.back.IsZero() && now.Sub(p.back) < 7*time.Minute {
			return true
		}
	}
	return false
}

// show shows a partition of an answer.
func show(p *web.GroupPartition) string {
	text := fmt.Sprintf("verdict %q", p.Verdict)
	if p.Committed != nil {
		text += fmt.Sprintf(", committed %d", *p.Committed)
	}
	if p.Lag != nil {
		text += fmt.Sprintf(", lag %d", *p.Lag)
	}
	if p.LagSeconds != nil {
		text += fmt.Sprintf(", %.1f s", *p.LagSeconds)
	}
	if p.LogStart != nil && p.LogEnd != nil {
		text += fmt.Sprintf(", log %d to %d", *p.LogStart, *p.LogEnd)
	}
	return text
}
