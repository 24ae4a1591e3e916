package lag

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func plain(at tick) time.Time { return time.UnixMilli(int64(at) * 100) }

type sample struct {
	at             tick
	lag, age, next int64
}

// samples draws what a ring is told: mostly one each 10 s, with holes.
func samples(t *rapid.T) []sample {
	n := rapid.IntRange(1, 700).Draw(t, "n")
	holes := rapid.IntRange(0, 3).Draw(t, "holes")
	holeAt := rapid.SliceOfN(rapid.IntRange(0, n), holes, holes).Draw(t, "where")
	hole := rapid.SliceOfN(rapid.IntRange(1, 400), holes, holes).Draw(t, "how long")
	seed := rapid.Int64Range(0, 1<<40).Draw(t, "seed")
	var out []sample
	at := hour + tick(rapid.IntRange(0, 10_000).Draw(t, "begin"))
	for i := range n {
		at += step
		for j := range holes {
			if holeAt[j] == i {
				at += tick(hole[j]) * step
			}
		}
		seed = (seed*6364136223846793005 + 1442695040888963407) & math.MaxInt64
		out = append(out, sample{at, seed >> 40, seed >> 35, seed >> 32})
	}
	return out
}

func TestGroupRingHoldsTheLargestOfEachTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		told := samples(t)
		r := newGroupRing(nil)
		for _, s := range told {
			r.add(s.at, s.lag, s.age)
		}
		last := told[len(told)-1].at
		for which, width := range levelStep {
			lags, ages := map[tick]int64{}, map[tick]int64{}
			for _, s := range told {
				if slot := s.at / width; slot+levelPoints > last/width {
					lags[slot], ages[slot] = max(lags[slot], s.lag), max(ages[slot], s.age)
				}
			}
			got := r.points(which, plain)
			if len(got) != len(lags) {
				t.Fatalf("level %d has %d points, want %d", which, len(got), len(lags))
			}
			for i, p := range got {
				slot := tick(p.At.UnixMilli()/100) / width
				if !near(float64(p.Lag), float64(lags[slot])) || !near(p.Seconds*1000, float64(ages[slot])) {
					t.Fatalf("level %d at %d: %+v, want %d and %d", which, slot, p, lags[slot], ages[slot])
				}
				if i > 0 && !p.At.After(got[i-1].At) {
					t.Fatal("points out of order")
				}
			}
		}
	})
}

func near(got, want float64) bool { return math.Abs(got-want) <= 0.004*want }

func TestPartitionRingHoldsTheFirstOfEachMinute(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		told := samples(t)
		unit := rapid.SampledFrom([]uint8{0, 10}).Draw(t, "unit")
		r := newPartitionRing(nil, unit)
		want := map[tick]sample{}
		for _, s := range told {
			r.add(s.at, s.next, s.age)
			if _, there := want[s.at/minute]; !there {
				want[s.at/minute] = s
			}
		}
		last := told[len(told)-1].at / minute
		for m := range want {
			if m+partitionPoints <= last {
				delete(want, m)
			}
		}
		got := r.points(plain)
		if len(got) != len(want) {
			t.Fatalf("%d points, want %d", len(got), len(want))
		}
		for _, p := range got {
			w := want[tick(p.At.UnixMilli()/100)/minute]
			if p.Committed != w.next>>unit<<unit || !near(p.Seconds*1000, float64(w.age)) {
				t.Fatalf("%+v, want %+v", p, w)
			}
		}
	})
}

func TestPartitionRingMovesItsBase(t *testing.T) {
	const far = 3 << 32
	for _, c := range []struct {
		name      string
		committed []int64
		want      []int64
	}{
		{"a group that goes on slowly", []int64{1 << 40, 1<<40 + 5, 1<<40 + 1<<31}, []int64{1 << 40, 1<<40 + 5, 1<<40 + 1<<31}},
		{"beyond the base by all that fits", []int64{0, math.MaxUint32 - 1}, []int64{0, math.MaxUint32 - 1}},
		{"one more", []int64{0, math.MaxUint32}, []int64{math.MaxUint32}},
		{"a jump to the end forgets what does not fit", []int64{5, 6, far}, []int64{far}},
		{"a rewind", []int64{far, far + 1, 7}, []int64{7}},
		{"a rewind that fits", []int64{far, far + 1, far - 1<<30}, []int64{far, far + 1, far - 1<<30}},
		{"back and forth", []int64{far, 7, far}, []int64{far}},
		{"as much stays as fits", []int64{0, 1 << 31, 5 << 30}, []int64{1 << 31, 5 << 30}},
		{"many steps of which few fit", []int64{1 << 31, 2 << 31, 3 << 31, 4 << 31}, []int64{3 << 31, 4 << 31}},
	} {
		r := newPartitionRing(nil, 0)
		for i, committed := range c.committed {
			r.add(hour+tick(i)*minute, committed, 0)
		}
		var got []int64
		for _, p := range r.points(plain) {
			got = append(got, p.Committed)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestPartitionRingLooksBack(t *testing.T) {
	r := newPartitionRing(nil, 0)
	if _, _, _, ok := r.at(day, rateTime); ok {
		t.Error("an empty ring knows the past")
	}
	for i := range tick(90) {
		if i != 84 && i != 85 { // A hole.
			r.add(day+i*minute, int64(i), int64(1000*i))
		}
	}
	now := day + 89*minute
	for _, c := range []struct{ ago, committed int64 }{{0, 89}, {1, 88}, {3, 86}, {4, 86}, {5, 86}, {6, 83}, {63, 26}, {80, 26}} {
		committed, age, since, ok := r.at(now, tick(c.ago)*minute)
		if !ok || committed != c.committed || age != 1000*c.committed && !near(float64(age), float64(1000*c.committed)) || since != tick(89-c.committed)*minute {
			t.Errorf("%d minutes ago: %d, %d ms, since %d", c.ago, committed, age, since)
		}
	}
}
