package lag

import (
	"math"
	"time"
)

// partitionPoints is how many points are kept of a group and a partition, one a minute.
const partitionPoints = 64

// noOffset is a committed offset of which nothing is known.
const noOffset = math.MaxUint32

// partitionRing is where a group was in a partition over time. Committed offsets are
// kept as what they are beyond a base, in units: of layout stream a unit is a
// millisecond, since otherwise an hour would not fit.
type partitionRing struct {
	node[partitionRing]
	owner     *position
	base      int64
	slot      uint32 // The number of the newest point's minute. 0 is before the first.
	unit      uint8  // In bits.
	committed [partitionPoints]uint32
	age       [partitionPoints]short
}

func newPartitionRing(owner *position, unit uint8) *partitionRing {
	r := &partitionRing{owner: owner, unit: unit}
	r.node.item = r
	for i := range partitionPoints {
		r.committed[i], r.age[i] = noOffset, gap
	}
	return r
}

// add notes where a group is. The first point of a minute stays: it is about the
// minute's begin.
func (r *partitionRing) add(now tick, committed, age int64) {
	slot := uint32(now/minute) + 1
	if slot <= r.slot {
		return
	}
	if r.slot != 0 {
		for s := max(r.slot+1, slot-min(slot, partitionPoints)); s < slot; s++ {
			r.committed[s%partitionPoints], r.age[s%partitionPoints] = noOffset, gap
		}
	}
	i := slot % partitionPoints
	first := r.slot == 0
	r.slot = slot
	units := committed >> r.unit
	if first {
		r.base = units - min(units, noOffset/2)
	} else if units < r.base || units-r.base >= noOffset {
		r.rebase(units)
	}
	r.committed[i], r.age[i] = uint32(units-r.base), shorten(age)
}

// rebase makes room for an offset that does not fit. The others move with the base;
// those that do not fit any more are forgotten.
func (r *partitionRing) rebase(units int64) {
	before := r.base
	low, high := units, units
	for _, c := range r.committed {
		if c != noOffset {
			low, high = min(low, before+int64(c)), max(high, before+int64(c))
		}
	}
	switch {
	case high-low < noOffset:
		r.base = low - min(low, (noOffset-(high-low))/2) // In the middle, so that it fits for long.
	case units == high:
		r.base = units - noOffset + 1 // The group went on: as much as there is room for.
	default:
		r.base = units
	}
	for i, c := range r.committed {
		if c == noOffset {
			continue
		}
		if moved := before + int64(c) - r.base; moved >= 0 && moved < noOffset {
			r.committed[i] = uint32(moved)
		} else {
			r.committed[i], r.age[i] = noOffset, gap
		}
	}
}

// at returns the point of a time ago, or the next later one, and how long ago that was.
func (r *partitionRing) at(now, ago tick) (committed, age int64, since tick, ok bool) {
	if ago > now {
		ago = now
	}
	for s := uint32((now-ago)/minute) + 1; s <= r.slot; s++ {
		if s+partitionPoints <= r.slot {
			continue
		}
		if i := s % partitionPoints; r.committed[i] != noOffset {
			return r.offset(i), r.age[i].value(), now - min(now, tick(s-1)*minute), true
		}
	}
	return 0, 0, 0, false
}

func (r *partitionRing) offset(i uint32) int64 { return (r.base + int64(r.committed[i])) << r.unit }

// PartitionPoint is where a group was in a partition.
type PartitionPoint struct {
	At        time.Time // The minute.
	Committed int64     // Of layout stream to the millisecond.
	Seconds   float64
}

// points returns the points, the oldest first, without those of which nothing is known.
func (r *partitionRing) points(at func(tick) time.Time) []PartitionPoint {
	out := make([]PartitionPoint, 0, partitionPoints)
	for s := r.slot - min(r.slot, partitionPoints) + 1; s <= r.slot; s++ {
		if i := s % partitionPoints; r.committed[i] != noOffset {
			out = append(out, PartitionPoint{at(tick(s-1) * minute), r.offset(i), seconds(r.age[i])})
		}
	}
	return out
}
