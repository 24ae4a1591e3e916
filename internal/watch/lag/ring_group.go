package lag

import "time"

// The levels of a group's ring: 180 points each, of 10 s (half an hour), 2 minutes
// (6 hours) and 16 minutes (48 hours).
const (
	levelPoints = 180
	levels      = 3
)

var levelStep = [levels]tick{step, 2 * minute, 16 * minute}

// level is a ring of points. A point of the coarser levels is the largest that was
// seen in its time, so that no peak vanishes.
type level struct {
	slot uint32 // The number of the newest point's time, in steps. 0 is before the first.
	lag  [levelPoints]short
	age  [levelPoints]short
}

// groupRing is the lag of a group over time.
type groupRing struct {
	node[groupRing]
	owner  *group
	levels [levels]level
}

func newGroupRing(owner *group) *groupRing {
	r := &groupRing{owner: owner}
	r.node.item = r
	for i := range r.levels {
		for j := range levelPoints {
			r.levels[i].lag[j], r.levels[i].age[j] = gap, gap
		}
	}
	return r
}

// add notes the lag, and the age in milliseconds of the first unread record.
func (r *groupRing) add(now tick, lag, age int64) {
	for i := range r.levels {
		r.levels[i].add(uint32(now/levelStep[i])+1, shorten(lag), shorten(age))
	}
}

func (l *level) add(slot uint32, lag, age short) {
	if slot < l.slot {
		return
	}
	i := slot % levelPoints
	if slot == l.slot {
		l.lag[i], l.age[i] = max(l.lag[i], lag), max(l.age[i], age)
		return
	}
	if l.slot != 0 {
		for s := max(l.slot+1, slot-min(slot, levelPoints)); s < slot; s++ {
			l.lag[s%levelPoints], l.age[s%levelPoints] = gap, gap
		}
	}
	l.slot, l.lag[i], l.age[i] = slot, lag, age
}

// Point is the lag of a group at a time.
type Point struct {
	At      time.Time // Of coarser levels the begin of the time that it is about.
	Lag     int64
	Seconds float64
}

// points returns the points of a level, the oldest first, without those of which
// nothing is known.
func (r *groupRing) points(which int, at func(tick) time.Time) []Point {
	l := &r.levels[which]
	out := make([]Point, 0, levelPoints)
	for s := l.slot - min(l.slot, levelPoints) + 1; s <= l.slot; s++ {
		if i := s % levelPoints; l.lag[i] != gap {
			out = append(out, Point{at(tick(s-1) * levelStep[which]), l.lag[i].value(), seconds(l.age[i])})
		}
	}
	return out
}
