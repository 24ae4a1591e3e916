package lag

import "slices"

// Points are kept every 10 s for an hour, every minute for a day, and every ten
// minutes for the week that __group_history is kept too. The times are in tenths of
// a second since the tracker began.
const (
	second tick = 10
	minute      = 60 * second
	hour        = 60 * minute
	day         = 24 * hour

	// step is between two passes.
	step = 10 * second

	fullTable = int(hour/step + 23*hour/minute + 6*day/(10*minute))
	// leastTable is how many points a table may have at least, however many tables
	// share the memory.
	leastTable = 8
	// growth is by how many points a table grows, and how many more than it should
	// have it may have before some go.
	growth = 64
)

// tick is a time in tenths of a second since a tracker began. It lasts for 13 years.
type tick uint32

// point says that a log ended at an offset at a time.
type point struct {
	at   tick
	high uint32 // Two halves: as an int64 it would take 16 bytes for 12.
	low  uint32
}

func (p point) end() int64 { return int64(p.high)<<32 | int64(p.low) }

// table knows when the records of a log were appended, within a window: what a log
// ended at at some times. Every subset of what was seen is true, with wider windows.
type table struct {
	points []point
	tidyAt int // At how many points some go.
}

// note adds what a log ends at now. While it stands still the first and the last
// sight are kept. It returns false if the log ends before where it ended: then it is
// another log, and the table begins anew.
func (t *table) note(now tick, end int64, limit int) (same bool) {
	n := len(t.points)
	same = n == 0 || t.points[n-1].end() <= end
	if !same {
		t.points, n = t.points[:0], 0
	}
	if n > 0 && t.points[n-1].at >= now {
		return same // Seen a moment ago.
	}
	p := point{now, uint32(end >> 32), uint32(end)}
	if n > 1 && t.points[n-1].end() == end && t.points[n-2].end() == end {
		t.points[n-1] = p
		return same
	}
	if n == cap(t.points) {
		// A slice that is to grow by itself doubles.
		t.points = append(slices.Grow([]point(nil), n+min(growth, max(n, 2))), t.points...)
	}
	t.points = append(t.points, p)
	if len(t.points) >= max(t.tidyAt, growth) || len(t.points) > limit+growth {
		t.thin(now, limit)
	}
	return same
}

// spacing is how far apart points of an age are.
func spacing(age tick) tick {
	switch {
	case age < hour:
		return 0
	case age < day:
		return minute
	}
	return 10 * minute
}

// thin drops points that their neighbours can stand in for, those of more than a
// week, and the oldest beyond the limit.
func (t *table) thin(now tick, limit int) {
	kept := t.points[:0]
	for i, p := range t.points {
		last := i == len(t.points)-1
		if !last && t.points[i+1].at+7*day <= now {
			continue // The next one is a week old as well.
		}
		if n := len(kept); n > 0 && !last && t.points[i+1].at-kept[n-1].at <= spacing(now-p.at) {
			continue
		}
		kept = append(kept, p)
	}
	if more := len(kept) - limit; more > 0 {
		kept = slices.Delete(kept, 0, more)
	}
	t.points = kept
	if cap(kept)-len(kept) > 2*growth {
		t.points = append(slices.Grow([]point(nil), len(kept)+growth), kept...)
	}
	t.tidyAt = len(kept) + growth
}

// window returns between which two points a record was appended: at from it was not
// there, and at to it was. older says that it was there at the first point already,
// which then is to; beyond, that it was not there at the last.
func (t *table) window(offset int64) (from, to point, older, beyond bool) {
	i, _ := slices.BinarySearchFunc(t.points, offset, func(p point, offset int64) int {
		if p.end() <= offset {
			return -1
		}
		return 1
	})
	switch i {
	case len(t.points):
		return point{}, point{}, false, true
	case 0:
		return point{}, t.points[0], true, false
	}
	return t.points[i-1], t.points[i], false, false
}

// endAt returns what the log ended at at a time, or shortly before, and when that was.
func (t *table) endAt(at tick) (point, bool) {
	i, found := slices.BinarySearchFunc(t.points, at, func(p point, at tick) int { return int(int64(p.at) - int64(at)) })
	if !found {
		i--
	}
	if i < 0 {
		return point{}, false
	}
	return t.points[i], true
}
