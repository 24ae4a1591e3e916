package watch

import (
	"context"
	"slices"
	"time"

	"muster/internal/watch/lag"
)

const (
	// countTime is how long a pass counts records. Redis does nothing else meanwhile; what is
	// not counted then has its turn in the next pass.
	countTime = time.Second
	// countAtOnce is from how many places records are counted before it is looked how much
	// time is left.
	countAtOnce = 128
	// countAlone is for how many places a question has room to count as far as records are
	// counted.
	countAlone = 2
)

// stream is a partition whose records must be counted. Compaction takes some away between
// its bounds, which its bytes tell.
type stream struct {
	lag.Bounds
	bytes int64
}

// counted is how many records there were from a place on, when the log was as it says.
type counted struct {
	lag.Count
	stream
}

// count counts the records that some groups have before them, where a difference of
// offsets does not tell. What neither the group nor the log has moved from is known from
// the pass before.
func (x *pass) count(ctx context.Context, some []Group) {
	if len(x.streams) == 0 {
		return
	}
	var places []PartitionOffset
	for i := range some {
		for _, o := range some[i].Offsets {
			b, ok := x.streams[o.Part]
			if !ok || o.Committed < 0 || lag.Next(o.Committed, b.Bounds) >= b.End {
				continue
			}
			place := PartitionOffset{o.Topic, o.Partition, o.Committed}
			if _, done := x.counts[place]; done {
				continue
			}
			if before, ok := x.w.counts[place]; ok && before.stream == b {
				x.counts[place] = before
				continue
			}
			places = append(places, place)
		}
	}
	for len(places) > 0 {
		n := min(len(places), countAtOnce)
		x.countSome(ctx, places[:n])
		places = places[n:]
	}
}

// countSome counts from some places on, if it is their turn and there is time.
func (x *pass) countSome(ctx context.Context, places []PartitionOffset) {
	t := &x.turn
	first := t.place
	t.place += len(places)
	left := countTime - x.counted
	switch {
	case t.place <= x.w.countFrom:
		return // Others have waited for longer.
	case first < x.w.countFrom:
		places, first = places[x.w.countFrom-first:], x.w.countFrom
	}
	switch {
	case left <= 0:
		t.next(first)
		return
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	rest := x.countThese(ctx, places)
	for tried := 0; len(rest) < len(places) && tried < len(rest) && ctx.Err() == nil; tried += countAlone {
		x.countThese(ctx, rest[tried:min(tried+countAlone, len(rest))])
	}
	x.counted += time.Since(began)
	at := slices.IndexFunc(places, func(p PartitionOffset) bool { _, done := x.counts[p]; return !done })
	switch {
	case ctx.Err() == nil || at < 0: // They had their turn.
	case at > 0 || t.asked:
		t.next(first + at)
	default:
		t.next(first + 1) // It had all the time that there is.
	}
	t.asked = true
}

// countThese counts from some places on, and returns those that were not counted: there
// was no time, or all that one question may count was others'.
func (x *pass) countThese(ctx context.Context, places []PartitionOffset) (rest []PartitionOffset) {
	counts := x.w.opts.Source.Count(ctx, places)
	for i, place := range places {
		if i >= len(counts) || counts[i] == nil {
			rest = append(rest, place)
			continue
		}
		b := x.streams[Part{place.Topic, place.Partition}]
		x.counts[place] = counted{*counts[i], b}
	}
	return rest
}

// turns says whose turn it is to be counted. Where there is more to count than a pass has
// time for, the next pass goes on where this one ended: so the turn comes to all, within as
// many passes as counting takes seconds.
type turns struct {
	place   int  // How many places there were so far.
	asked   bool // Someone was counted in this pass.
	stopped bool
	from    int // Where the next pass goes on; 0 if this one came to the end.
}

func (t *turns) next(from int) {
	if !t.stopped {
		t.stopped, t.from = true, from
	}
}

// holder is a group in a partition.
type holder struct {
	group string
	Part
}

// known returns what was counted of a group from a place on. If it was not its turn, that is
// what was counted last, and said to be approximate; nil if it never was.
func (x *pass) known(group string, p PartitionOffset) *lag.Count {
	part := Part{p.Topic, p.Partition}
	if _, is := x.streams[part]; !is {
		return nil
	}
	who := holder{group, part}
	if c := x.behind(p); c != nil {
		x.last[who] = *c
		return c
	}
	if b := x.streams[part]; lag.Next(p.Offset, b.Bounds) >= b.End {
		return nil // Nothing is left, and nothing was counted.
	}
	c, ok := x.w.lastCounts[who]
	if !ok || !x.turn.waits(x.w.countFrom) {
		return nil
	}
	c.Approximate = true
	x.last[who] = c
	return &c
}

// waits says whether someone had to wait in this pass.
func (t *turns) waits(from int) bool { return t.stopped || from > 0 }
