package lag

import (
	"iter"
	"math"
	"slices"
	"strings"
	"time"
)

// GroupLag is how far a group is behind, as of the last pass.
type GroupLag struct {
	Name    string
	Members int
	Total
	Seconds        float64 // The age of the oldest first unread record, 0 without lag.
	SecondsAtLeast bool    // It may be older.
	Left           bool    // There is something to read. Lag alone may be the ends of transactions, which some clients do not commit.
	Held           bool    // Open transactions keep readers from all that is old enough to say that the group does not catch up.
	ReadOutside    bool    // There is lag, and someone who is no member reads and commits: one that assigns partitions by itself.
	Sparse         bool    // Offsets of a partition are not dense, so Rates lack what was read as fast as it came.
	Rates          Rates
	CatchUp        CatchUp
	Dying          bool             // Members die in several partitions, and it gets on in none.
	Poison         int32            // Partitions with a record that may kill who reads it; 0 if it is Dying.
	CatchUpTime    time.Duration    // If it is Catching.
	Verdicts       [Rewound + 1]int // How many partitions have each.
	Stuck          int              // Partitions that stand still though the group has members.
	Margin         float64          // In how many seconds retention deletes the first unread record at the earliest; +Inf if never.
	OvertakenIn    float64          // When it will at the present pace, in seconds; +Inf if not.

	consumed, produced int64 // Since the last pass.
}

// summarize computes what is said of the whole group.
func (t *Tracker) summarize(g *group) {
	g.Margin, g.OvertakenIn = math.Inf(1), math.Inf(1)
	suspects := 0
	var own float64 // The age of what no transaction holds back.
	for _, p := range g.positions {
		g.ReadOutside = g.ReadOutside || g.Lag > 0 && p.readOutside(t.now)
		g.Verdicts[p.verdict]++
		if p.verdict.Stuck() {
			g.Stuck++
		}
		if g.deaths[p].suspects() > 0 {
			suspects++
		}
		if !p.known || !p.left() {
			continue
		}
		g.Left = true
		age := float64(p.age(t.nowMillis)) / 1000
		g.Seconds = max(g.Seconds, age)
		if !p.heldBack() {
			own = max(own, age)
		}
		g.SecondsAtLeast = g.SecondsAtLeast || !p.dated
		if left, limited := p.log.margin(age); limited {
			g.Margin = min(g.Margin, max(left, 0))
		}
		if p.log.Retention.Age > 0 || p.log.Retention.Bytes > 0 {
			if in, will := p.log.overtakes(t.pace(p)); will {
				g.OvertakenIn = min(g.OvertakenIn, in)
			}
		}
	}
	if suspects > 0 {
		t.blame(g, suspects)
	}
	g.Held = g.Seconds >= catchesLate.Seconds() && own < catchesLate.Seconds()
	if g.Approximate {
		g.meter = meter{} // No one can tell what was consumed, so it is watched anew afterwards.
	} else {
		g.meter.add(t.now, g.consumed, g.produced)
	}
	g.Rates = g.meter.rates(t.now)
	if g.Unknown || g.Approximate {
		g.CatchUp = Unknown
		return
	}
	lag := g.Lag
	if !g.Left {
		lag = 0
	}
	g.CatchUp, g.CatchUpTime = Forecast(lag, g.Rates)
}

// Groups returns the groups that the last pass has seen, in order of name.
func (t *Tracker) Groups() iter.Seq[*GroupLag] {
	return func(yield func(*GroupLag) bool) {
		for _, g := range t.all {
			if !t.seen(g) {
				continue
			}
			if out := g.lag(); !yield(&out) {
				return
			}
		}
	}
}

// Of returns a group, if the last pass has seen it.
func (t *Tracker) Of(name string) (GroupLag, bool) {
	g := t.groups[name]
	if g == nil || !t.seen(g) {
		return GroupLag{}, false
	}
	return g.lag(), true
}

// PartitionLag is how far a group is behind in a partition that it has committed.
type PartitionLag struct {
	Topic     string
	Partition int32
	Committed int64
	Known     bool // The rest is: the partition has a leader and, of layout stream, was counted.
	Bounds
	Lag            int64
	Approximate    bool
	Seconds        float64
	SecondsAtLeast bool
	Verdict        Verdict
	Deaths         int     // How many members died at the committed offset, one after the other, if a record is suspected.
	Margin         float64 // As in GroupLag.
	OvertakenIn    float64
}

// Partitions returns the partitions that a group has committed, by topic and number.
func (t *Tracker) Partitions(name string) []PartitionLag {
	g := t.groups[name]
	if g == nil || !t.seen(g) {
		return nil
	}
	out := make([]PartitionLag, len(g.positions))
	for i, p := range g.positions {
		out[i] = PartitionLag{
			Topic: p.log.Topic, Partition: p.log.Partition, Committed: p.committed, Known: p.known,
			Verdict: p.verdict, Deaths: g.deaths[p].suspects(), Margin: math.Inf(1), OvertakenIn: math.Inf(1),
		}
		if !p.known {
			continue
		}
		o := &out[i]
		o.Bounds, o.Lag, o.Approximate = p.log.Bounds, p.lag, p.approximate
		o.Seconds, o.SecondsAtLeast = float64(p.age(t.nowMillis))/1000, p.left() && !p.dated
		if !p.left() {
			continue
		}
		if left, limited := p.log.margin(o.Seconds); limited {
			o.Margin = max(left, 0)
		}
		if in, will := p.log.overtakes(t.pace(p)); will {
			o.OvertakenIn = in
		}
	}
	return out
}

// History returns the lag of a group over time: level 0 is points of 10 s, 1 of two
// minutes, 2 of 16 minutes. Without points the lag has not changed since it is watched,
// or there was no room; see Past.
func (t *Tracker) History(name string, level int) []Point {
	g := t.groups[name]
	if g == nil || g.ring == nil || level < 0 || level >= levels {
		return nil
	}
	return g.ring.points(level, t.time)
}

// PartitionHistory returns where a group was in a partition, minute by minute.
func (t *Tracker) PartitionHistory(name, topic string, partition int32) []PartitionPoint {
	g := t.groups[name]
	if g == nil {
		return nil
	}
	i, found := slices.BinarySearchFunc(g.positions, partition, func(p *position, partition int32) int {
		if c := strings.Compare(p.log.Topic, topic); c != 0 {
			return c
		}
		return int(p.log.Partition) - int(partition)
	})
	if !found || g.positions[i].ring == nil {
		return nil
	}
	return g.positions[i].ring.points(t.time)
}
