package meter

import (
	"math"
	"math/bits"
	"slices"
	"sync/atomic"
	"time"
)

// Schema is that of Prometheus's native histograms: each bucket ends 2^(1/4) times
// later than the one before.
const Schema = 2

// Native buckets end at 2^(i/4) seconds, from the first to the last i. What is shorter
// than the first has the zero bucket, what is longer than the last, 512 s, is in that.
const (
	firstNative = -17 << Schema
	lastNative  = 9 << Schema
)

// A Scale says where the cells of a histogram end: wherever a native bucket does, and
// wherever one of the few classic buckets does, so that one addition counts for both.
type Scale struct {
	Classic []time.Duration // In rising order.
	ends    []int64         // Of cells, in nanoseconds, rising. What is longer is in one more cell.
	native  []int           // The native bucket of each cell.
	from    [65]int         // Where to begin to look, by the length of a number in bits.
}

// The scales.
var (
	// Fast is for what takes from microseconds to seconds.
	Fast = newScale(500*time.Microsecond, time.Millisecond, 2500*time.Microsecond, 5*time.Millisecond, 10*time.Millisecond,
		50*time.Millisecond, 100*time.Millisecond, 500*time.Millisecond, time.Second, 5*time.Second)
	// Slow is for what takes from a tenth of a second to minutes.
	Slow = newScale(100*time.Millisecond, 500*time.Millisecond, time.Second, 3*time.Second, 5*time.Second,
		10*time.Second, 30*time.Second, time.Minute, 2*time.Minute, 5*time.Minute)
)

// nativeEnd returns where a native bucket ends, in nanoseconds.
func nativeEnd(i int) int64 { return int64(1e9 * math.Exp2(float64(i)/(1<<Schema))) }

func newScale(classic ...time.Duration) *Scale {
	s := &Scale{Classic: classic}
	for i := firstNative; i <= lastNative; i++ {
		s.ends = append(s.ends, nativeEnd(i))
	}
	for _, c := range classic {
		s.ends = append(s.ends, int64(c))
	}
	slices.Sort(s.ends)
	s.ends = slices.Compact(s.ends)
	i := firstNative
	for _, end := range s.ends {
		for i < lastNative && nativeEnd(i) < end {
			i++
		}
		s.native = append(s.native, i)
	}
	s.native = append(s.native, lastNative)
	for n := range s.from {
		least := int64(0)
		if n > 0 && n < 64 {
			least = 1 << (n - 1)
		}
		s.from[n], _ = slices.BinarySearch(s.ends, least)
	}
	return s
}

// cell returns the cell of a duration: the first that ends at or after it.
func (s *Scale) cell(d time.Duration) int {
	n := max(int64(d), 0)
	i := s.from[bits.Len64(uint64(n))]
	for i < len(s.ends) && n > s.ends[i] {
		i++
	}
	return i
}

// Histogram counts durations.
type Histogram struct {
	scale *Scale
	cells []atomic.Uint64
	sum   atomic.Int64
}

// NewHistogram returns a histogram of a scale.
func NewHistogram(s *Scale) *Histogram {
	return &Histogram{scale: s, cells: make([]atomic.Uint64, len(s.ends)+1)}
}

// Observe counts a duration.
func (h *Histogram) Observe(d time.Duration) {
	h.cells[h.scale.cell(d)].Add(1)
	h.sum.Add(int64(max(d, 0)))
}

// Read returns what was counted so far.
func (h *Histogram) Read() Durations {
	out := NewDurations(h.scale)
	h.addTo(&out)
	return out
}

func (h *Histogram) addTo(d *Durations) {
	for i := range h.cells {
		d.cells[i] += h.cells[i].Load()
	}
	d.Sum += time.Duration(h.sum.Load())
}

// Durations is what a histogram has counted by some moment.
type Durations struct {
	Scale *Scale
	Sum   time.Duration
	cells []uint64
}

// NewDurations returns none.
func NewDurations(s *Scale) Durations {
	return Durations{Scale: s, cells: make([]uint64, len(s.ends)+1)}
}

// Since returns those that came after an earlier moment.
func (d Durations) Since(before Durations) Durations {
	out := Durations{Scale: d.Scale, Sum: d.Sum - before.Sum, cells: slices.Clone(d.cells)}
	for i := range before.cells {
		out.cells[i] -= before.cells[i]
	}
	return out
}

// Count is how many there are.
func (d Durations) Count() (n uint64) {
	for _, c := range d.cells {
		n += c
	}
	return n
}

// Classic returns how many are at most as long as each classic bound.
func (d Durations) Classic() []uint64 {
	out := make([]uint64, len(d.Scale.Classic))
	i, n := 0, uint64(0)
	for at, bound := range d.Scale.Classic {
		for ; i < len(d.Scale.ends) && d.Scale.ends[i] <= int64(bound); i++ {
			n += d.cells[i]
		}
		out[at] = n
	}
	return out
}

// ZeroThreshold is up to where a duration is in the zero bucket, in seconds.
func ZeroThreshold() float64 { return math.Exp2(firstNative / (1 << Schema)) }

// Native calls f with each native bucket that is not empty, in order, and returns how
// many are in the zero bucket.
func (d Durations) Native(f func(bucket int, count uint64)) (zero uint64) {
	for i := 0; i < len(d.cells); {
		bucket, n := d.Scale.native[i], uint64(0)
		for ; i < len(d.cells) && d.Scale.native[i] == bucket; i++ {
			n += d.cells[i]
		}
		switch {
		case bucket == firstNative:
			zero = n
		case n > 0:
			f(bucket, n)
		}
	}
	return zero
}

// Quantile estimates what a part of them was at most, which is right to about a tenth;
// false if there are none.
func (d Durations) Quantile(q float64) (time.Duration, bool) {
	count := d.Count()
	if count == 0 {
		return 0, false
	}
	rank := q * float64(count)
	seen, start := 0.0, 0.0
	for i, end := range d.Scale.ends {
		n := float64(d.cells[i])
		if n > 0 && seen+n >= rank {
			return time.Duration(start + (float64(end)-start)*(rank-seen)/n), true
		}
		seen, start = seen+n, float64(end)
	}
	return time.Duration(start), true
}
