package lag

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

func TestRatesAreAveragesOfFiveMinutes(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	type counted struct {
		at                 tick
		consumed, produced int64
	}
	var m meter
	var all []counted
	began := 3*hour + 17*second
	for now := began; now < began+40*minute; now += step {
		c := counted{now, 500 + r.Int64N(20), 0}
		if now < began+20*minute {
			c.produced = 1000
		}
		all = append(all, c)
		m.add(now, c.consumed, c.produced)
		got := m.rates(now)
		if known := now-began >= minute; got.Known != known {
			t.Fatalf("%d ticks after the begin: known %t", now-began, got.Known)
		} else if !known {
			continue
		}
		var want Rates
		over := float64(min(now-began, 5*minute)) / float64(second)
		for _, c := range all {
			if c.at+5*minute > now {
				want.Consumed += float64(c.consumed) / over
				want.Produced += float64(c.produced) / over
			}
		}
		// The oldest minute counts evenly, so the two differ by what one pass counts; at
		// the begin there is a pass more than there are intervals.
		if off := 540 * 2 / over; math.Abs(got.Consumed-want.Consumed) > off || math.Abs(got.Produced-want.Produced) > 2*off {
			t.Fatalf("%d s after the begin: %+v, want %+v", (now-began)/second, got, want)
		}
	}
	if got := m.rates(began + 40*minute); got.Produced != 0 {
		t.Errorf("%v though nothing was produced for 20 minutes", got)
	}
	if got := m.rates(began + 2*day); got.Consumed != 0 {
		t.Errorf("%v after a long rest", got)
	}
}

func TestMeterDoesNotOverflow(t *testing.T) {
	var m meter
	m.add(hour, math.MaxInt64, math.MaxInt64)
	m.add(hour, math.MaxInt64, -5)
	if got := m.rates(hour + 2*minute); got.Consumed != math.MaxUint32/120.0 || got.Produced != got.Consumed {
		t.Errorf("%+v", got)
	}
}

func TestForecastOfCatchingUp(t *testing.T) {
	for _, c := range []struct {
		name               string
		lag                int64
		consumed, produced float64
		known              bool
		want               CatchUp
		in                 time.Duration
	}{
		{"no lag", 0, 10, 10, true, CaughtUp, 0},
		{"not watched for long enough", 5, 0, 0, false, Unknown, 0},
		{"it reads faster", 600, 110, 100, true, Catching, time.Minute},
		{"only just", 600, 106, 100, true, Catching, 100 * time.Second},
		{"by five percent only", 600, 105, 100, true, NotCatching, 0},
		{"as fast", 600, 100, 100, true, NotCatching, 0},
		{"slower", 600, 50, 100, true, NotCatching, 0},
		{"nobody reads or writes", 600, 0, 0, true, NotCatching, 0},
		{"nobody writes", 600, 2, 0, true, Catching, 5 * time.Minute},
		{"not in this life", math.MaxInt64, 1, 0, true, NotCatching, 0},
	} {
		got, in := Forecast(c.lag, Rates{c.consumed, c.produced, c.known})
		if got != c.want || (in-c.in).Abs() > time.Millisecond {
			t.Errorf("%s: %v in %v, want %v in %v", c.name, got, in, c.want, c.in)
		}
	}
}

func TestForecastOfRetention(t *testing.T) {
	day := Retention{Age: 24 * time.Hour}
	size := Retention{Bytes: 1000, Size: 500}
	for _, c := range []struct {
		name string
		kept Retention
		pace pace
		want float64 // Negative: it does not.
	}{
		{"no limits", Retention{Age: -1, Bytes: -1, Size: 10}, pace{lag: 5, records: 10, age: 1e9, aging: 1}, -1},
		{"no lag", day, pace{age: 1e9, aging: 1}, -1},
		{"the group stands still", day, pace{lag: 5, age: 23 * 3600, aging: 1}, 3600},
		{"it gets on at half the speed of producers", day, pace{lag: 5, age: 23 * 3600, aging: 0.5}, 7200},
		{"it keeps up", day, pace{lag: 5, age: 23 * 3600, aging: 0}, -1},
		{"it catches up", day, pace{lag: 5, age: 23 * 3600, aging: -3}, -1},
		{"too late", day, pace{lag: 5, age: 25 * 3600, aging: -3}, 0},
		{"by size", size, pace{lag: 50, records: 100, growing: 10}, 15},
		{"by size, keeping up", size, pace{lag: 50, records: 100, growing: 0}, -1},
		{"by size, too late", size, pace{lag: 200, records: 100, growing: -5}, 0},
		{"by size, growth not known", size, pace{lag: 50, records: 100, growing: 10, noGrowth: true}, -1},
		{"whichever is first", Retention{time.Hour, 1000, 500}, pace{lag: 50, records: 100, growing: 10, age: 3595, aging: 1}, 5},
		{"whichever is first, by size", Retention{time.Hour, 1000, 500}, pace{lag: 50, records: 100, growing: 10, age: 5, aging: 1}, 15},
	} {
		got, will := c.kept.overtakes(c.pace)
		if will != (c.want >= 0) || will && math.Abs(got-c.want) > 1e-6 {
			t.Errorf("%s: %v in %v s, want %v", c.name, will, got, c.want)
		}
	}
}
