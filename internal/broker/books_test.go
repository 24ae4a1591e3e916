package broker_test

import (
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"
)

// The books of a test: what was written, deleted and committed, as those were told who
// did it. Lag is counted in them record by record, and findings follow from when things
// were done: nothing here knows how the broker computes.

// interval is between two looks of a broker at its groups, as documented. Times may be off
// by two of them.
const interval = 10 * time.Second

// jumpingClock is a clock that goes on by itself and jumps ahead besides.
type jumpingClock struct{ jumped atomic.Int64 }

func (c *jumpingClock) now() time.Time { return time.Now().Add(time.Duration(c.jumped.Load())) }

func (c *jumpingClock) jump(d time.Duration) { c.jumped.Add(int64(d)) }

// spot is a partition.
type spot struct {
	topic     string
	partition int32
}

// written is a record, or the marker of a transaction's end.
type written struct {
	offset int64
	at     time.Time // When that was.
	told   time.Time // When it says that was.
	marker bool
	txn    bool // It is of a transaction.
	quiet  bool // No one reads it: it is a marker, or of a transaction that was aborted.
}

// logBook is what a partition has.
type logBook struct {
	records []written // In order.
	start   int64     // What comes before is deleted.
	open    int64     // The first record of a transaction that is open, or -1.
}

func (l *logBook) add(w written) { l.records = append(l.records, w) }

// next is the offset of the next record where offsets have no gaps.
func (l *logBook) next() int64 {
	if n := len(l.records); n > 0 {
		return l.records[n-1].offset + 1
	}
	return 0
}

// newest is the offset of the last record that a consumer gets, -1 if there is none.
func (l *logBook) newest() int64 {
	for _, w := range slices.Backward(l.records) {
		if !w.marker && w.offset >= l.start {
			return w.offset
		}
	}
	return -1
}

// unread counts what is there to read from a committed offset on.
func (l *logBook) unread(committed int64) (n int64, first written) {
	for _, w := range l.records {
		if w.offset < l.start || w.offset < committed {
			continue
		}
		if n == 0 {
			first = w
		}
		n++
	}
	return n, first
}

// surely returns the first record from a committed offset on that someone will read. A
// broker knows of those before it, of a log that rests, that they are none.
func (l *logBook) surely(committed int64) (first written, found bool) {
	for _, w := range l.records {
		if w.offset >= max(l.start, committed) && !w.quiet {
			return w, true
		}
	}
	return written{}, false
}

// ownership is who has a partition of a group, as far as a broker can be told.
type ownership int

const (
	left      ownership = iota // No one says who has it, or no one is to read it.
	ownerless                  // There are members who subscribe to it, and none has it.
	owned
)

// placeBook is where a group is in a partition.
type placeBook struct {
	committed   int64
	committedAt time.Time
	owner       ownership
	fetched     time.Time // When its owner fetched it for certain; zero for never.
	fetches     bool      // It may have since then.

	// What a broker has seen that looks every interval, and when.
	seen    int64
	changed time.Time // Zero before the first look.
	lagging time.Time // Zero without lag.
	back    time.Time
	onward  time.Time     // When it went on, whoever committed.
	longest time.Duration // That it stood still with lag, and went on.
}

// groupBook is a group.
type groupBook struct {
	name    string
	members int
	places  map[spot]*placeBook
	since   time.Time // The first look.
	steps   []step
	lost    int64 // Records that were deleted unread since the last look, where offsets have gaps.
}

// step is what happened between two looks.
type step struct {
	at                       time.Time
	consumed, produced, lost int64
}

// books are all of it.
type books struct {
	rng    *rand.Rand
	clock  *jumpingClock
	logs   map[spot]*logBook
	groups map[string]*groupBook
	had    map[spot]int // How many records there were at the last look.
}

func newBooks(seed uint64) *books {
	return &books{
		rng: rand.New(rand.NewPCG(seed, 15)), clock: &jumpingClock{},
		logs: map[spot]*logBook{}, groups: map[string]*groupBook{}, had: map[spot]int{},
	}
}

// spots are the partitions in order.
func (b *books) spots() []spot {
	var out []spot
	for s := range b.logs {
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b spot) int {
		if a.topic != b.topic {
			return int(a.topic[0]) - int(b.topic[0])
		}
		return int(a.partition - b.partition)
	})
	return out
}

// group begins the book of a group.
func (b *books) group(name string) *groupBook {
	g := b.groups[name]
	if g == nil {
		g = &groupBook{name: name, places: map[spot]*placeBook{}}
		b.groups[name] = g
	}
	return g
}

// commit notes a commit.
func (b *books) commit(group string, s spot, offset int64) {
	g := b.group(group)
	p := g.places[s]
	if p == nil {
		p = &placeBook{}
		g.places[s] = p
	}
	p.committed, p.committedAt = offset, b.clock.now()
}

// looked notes that a broker has looked at everything.
func (b *books) looked(now time.Time) {
	for _, g := range b.groups {
		one := step{at: now, lost: g.lost}
		g.lost = 0
		for s, p := range g.places {
			l := b.logs[s]
			if !p.changed.IsZero() {
				if p.committed > p.seen {
					before, _ := l.unread(p.seen)
					after, _ := l.unread(p.committed)
					one.consumed += before - after
				}
				one.produced += int64(len(l.records) - b.had[s])
			}
			p.look(l, now)
		}
		if g.since.IsZero() {
			g.since = now
		}
		g.steps = append(g.steps, one)
	}
	for s, l := range b.logs {
		b.had[s] = len(l.records)
	}
}

func (p *placeBook) look(l *logBook, now time.Time) {
	switch {
	case p.changed.IsZero():
		p.changed = now
	case p.committed != p.seen:
		if !p.lagging.IsZero() {
			p.longest = max(p.longest, now.Sub(later(p.changed, p.lagging)))
		}
		if p.committed < p.seen {
			p.back = now
		} else {
			p.onward = now
		}
		p.changed = now
	}
	p.seen = p.committed
	switch n, _ := l.unread(p.committed); {
	case n == 0:
		p.lagging = time.Time{}
	case p.lagging.IsZero():
		p.lagging = now
	}
}

// restarted notes that the broker has forgotten what it saw. When records came it only
// knows from them.
func (b *books) restarted() {
	now := b.clock.now()
	for _, g := range b.groups {
		g.since, g.steps = time.Time{}, nil
		for _, p := range g.places {
			p.changed, p.lagging, p.back, p.longest = time.Time{}, time.Time{}, time.Time{}, 0
			p.fetched, p.onward = time.Time{}, time.Time{}
		}
	}
	for _, l := range b.logs {
		for i := range l.records {
			l.records[i].at = l.records[i].told
			if l.records[i].at.After(now) {
				l.records[i].at = now
			}
		}
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
