package quota

import (
	"encoding/binary"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// began is when all tests begin.
var began = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func limit(rate float64) Limit { return Limit{PerSecond: rate, Windows: 11, Window: time.Second} }

// taken is something that was taken at a time.
type taken struct {
	at time.Time
	n  float64
}

// naive is a bucket that remembers everything, and sums it up anew.
type naive struct {
	limit Limit
	all   []taken
}

// level is the least that is left in any window of time up to now: what a full
// bucket holds, what came in since the window began, less what was taken in it. A
// window that begins at the very start begins with one window's worth, or a full bucket.
func (m *naive) level(now time.Time) float64 {
	since := func(at time.Time) float64 { return m.limit.PerSecond * now.Sub(at).Seconds() }
	least := m.limit.most()
	sum := 0.0
	for i := len(m.all) - 1; i >= 0; i-- {
		sum += m.all[i].n
		least = min(least, m.limit.most()+since(m.all[i].at)-sum)
	}
	if !m.limit.Full {
		least = min(least, m.limit.window()+since(began)-sum)
	}
	return least
}

func near(a, b float64) bool {
	return math.Abs(a-b) <= 1e-6*max(1, math.Abs(a), math.Abs(b))
}

func TestABucketHoldsWhatTheSumsOverAllWindowsLeave(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := Limit{
			PerSecond: rapid.Float64Range(0.1, 1e9).Draw(t, "rate"),
			Windows:   rapid.IntRange(1, 20).Draw(t, "windows"),
			Window:    time.Duration(rapid.IntRange(1, 5).Draw(t, "window")) * time.Second,
			Full:      rapid.Bool().Draw(t, "full"),
		}
		b, m, now := NewBucket(l, began), naive{limit: l}, began
		near := func(a, b float64) bool { return near(a, b) || math.Abs(a-b) <= 2*rounding*l.PerSecond }
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(20*time.Second)).Draw(t, "passed")))
			n := rapid.Float64Range(0, 3*l.most()).Draw(t, "n")
			before := m.level(now)
			var wait time.Duration
			took := true
			switch rapid.IntRange(0, 2).Draw(t, "how") {
			case 0:
				wait = b.Take(n, now)
			case 1:
				wait = b.TakeUnlessOwing(n, now)
				if took = wait == 0; took != (before >= 0) && !near(before, 0) {
					t.Fatalf("with %v there, taking is %t", before, took)
				}
			case 2:
				wait = b.TakeIfThere(n, now)
				need := min(n, l.window())
				if took = wait == 0; took != (before >= need) && !near(before, need) {
					t.Fatalf("with %v there, taking %v is %t", before, n, took)
				}
			}
			if took {
				m.all = append(m.all, taken{now, n})
			}
			if got, want := b.Level(now), m.level(now); !near(got, want) {
				t.Fatalf("level %v, want %v", got, want)
			}
			if wait < 0 || wait > Longest || wait%time.Millisecond != 0 {
				t.Fatalf("told to wait %v", wait)
			}
		}
	})
}

// Whoever waits as told is served, whatever it wants; no one waits for ever.
func TestWhoWaitsAsToldGetsWhatItWants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := limit(rapid.Float64Range(1, 1e8).Draw(t, "rate"))
		b, now := NewBucket(l, began), began
		b.Take(rapid.Float64Range(0, 100*l.PerSecond).Draw(t, "owed"), now)
		n := rapid.Float64Range(1, 100*l.PerSecond).Draw(t, "n")
		strict := rapid.Bool().Draw(t, "strict")
		take := b.TakeIfThere
		if strict {
			take = b.TakeUnlessOwing
		}
		if wait := take(n, now); wait > 0 {
			now = now.Add(wait)
			if again := take(n, now); again != 0 {
				t.Fatalf("after %v it has to wait %v more", wait, again)
			}
			if wait > time.Millisecond && b.Level(now) > l.window()+l.PerSecond/500-n {
				t.Fatalf("waited %v too long: %v is left", wait, b.Level(now))
			}
		}
		if b.Take(0, now.Add(b.Owing(now))) != 0 {
			t.Fatal("it owes more than it was told")
		}
	})
}

func TestRoundingMakesNobodyWaitTwice(t *testing.T) {
	l := limit(2.562500000000014)
	b := NewBucket(l, began)
	b.Take(256.2500000000014, began)
	wait := b.TakeIfThere(2.75, began)
	if again := b.TakeIfThere(2.75, began.Add(wait)); again != 0 {
		t.Errorf("after %v it has to wait %v more", wait, again)
	}
}

// Clients that take whenever they are let stay at the rate from the first window on, but
// for what each of them may owe at the end.
func TestClientsThatTakeAllTheyCanStayAtTheRate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const rate, request = 1e6, 64e3
		b := NewBucket(limit(rate), began)
		next := make([]time.Time, rapid.IntRange(1, 8).Draw(t, "clients"))
		for i := range next {
			next[i] = began.Add(time.Duration(rapid.IntRange(0, 100).Draw(t, "start")) * time.Millisecond)
		}
		fetch := rapid.Bool().Draw(t, "fetch")
		sum := 0.0
		for {
			first := 0
			for i := range next {
				if next[i].Before(next[first]) {
					first = i
				}
			}
			now := next[first]
			if now.Sub(began) >= 30*time.Second {
				break
			}
			var wait time.Duration
			if fetch {
				if wait = b.TakeIfThere(request, now); wait == 0 {
					sum += request
				}
			} else {
				sum += request
				wait = b.Take(request, now)
			}
			next[first] = now.Add(max(wait, time.Millisecond))
		}
		// What each client may owe, and what the milliseconds round off.
		if most := 31*rate + float64(len(next))*request; sum > most || sum < 0.98*31*rate {
			t.Fatalf("%v bytes in 30 s by %d clients", sum, len(next))
		}
	})
}

func TestABucketFillsWhileNobodyTakes(t *testing.T) {
	b := NewBucket(limit(100), began)
	for _, c := range []struct {
		after time.Duration
		want  float64
	}{{0, 100}, {time.Second, 200}, {5 * time.Second, 600}, {11 * time.Second, 1100}, {time.Hour, 1100}, {time.Minute, 1100}} {
		if got := b.Level(began.Add(c.after)); got != c.want {
			t.Errorf("after %v: %v, want %v", c.after, got, c.want)
		}
	}
	for after, want := range map[time.Duration]float64{0: 100, time.Second / 2: 100, 5 * time.Second: 500} {
		b := NewBucket(limit(100), began)
		b.Take(100, began)
		if got := b.Room(began.Add(after)); got != want {
			t.Errorf("after %v there is room for %v, want %v", after, got, want)
		}
	}
	full := limit(100)
	full.Full = true
	if got := NewBucket(full, began).Level(began); got != 1100 {
		t.Errorf("a full one holds %v", got)
	}
}

func TestARaisedQuotaForgivesMostOfADebt(t *testing.T) {
	b := NewBucket(limit(1), began)
	if wait := b.Take(1e6, began); wait != Longest {
		t.Fatalf("wait %v", wait)
	}
	b.Alter(limit(1), began)
	if b.Level(began) != 1-1e6 {
		t.Errorf("the same limit again changed the debt to %v", b.Level(began))
	}
	b.Alter(limit(1000), began)
	if wait := b.Owing(began); wait != 11*time.Second {
		t.Errorf("after the raise it waits %v", wait)
	}
	b = NewBucket(limit(100), began)
	if b.Alter(limit(1000), began.Add(5*time.Second)); b.Level(began.Add(5*time.Second)) != 600 {
		t.Errorf("what was saved before the raise is now %v", b.Level(began.Add(5*time.Second)))
	}
	b = NewBucket(limit(1000), began)
	b.Alter(limit(10), began.Add(11*time.Second))
	if got := b.Level(began.Add(11 * time.Second)); got != 110 {
		t.Errorf("after the cut it has %v", got)
	}
}

func TestLimitsThatAreNoNumbersLetNothingThrough(t *testing.T) {
	for _, rate := range []float64{0, -1, math.NaN(), math.Inf(-1)} {
		l := limit(rate)
		l.Full = true
		b := NewBucket(l, began)
		if b.TakeIfThere(1, began) != Longest || b.TakeUnlessOwing(1, began) != Longest || b.Take(1, began) != Longest {
			t.Errorf("a rate of %v lets something through", rate)
		}
	}
	b := NewBucket(limit(math.Inf(1)), began)
	if wait := b.TakeIfThere(1e12, began.Add(time.Second)); wait != 0 {
		t.Errorf("an infinite rate has one wait %v", wait)
	}
	if wait := b.Take(1e12, began.Add(time.Second)); wait != 0 {
		t.Errorf("an infinite rate has one wait %v", wait)
	}
}

// Whatever number AlterClientQuotas brings, and whatever is taken when, no one waits for
// less than nothing or longer than the longest time, and a bucket never holds something
// that is no number or more than it may.
func FuzzBucket(f *testing.F) {
	f.Add(1e6, 0.5, uint8(11), []byte("\x00\x10\x00\x01\x01\xff\x00\x20\x02\x00\x00\x00\x03\x40"))
	f.Add(math.Inf(1), math.NaN(), uint8(0), []byte("\x00\x10\x00\x01\x04\x00\x00\x00"))
	f.Add(math.MaxFloat64, math.SmallestNonzeroFloat64, uint8(255), []byte("\x02\x10\x00\x01\x04\x00\x00\x00\x00\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, rate, next float64, windows uint8, script []byte) {
		now := time.Unix(1000, 0)
		limit := Limit{PerSecond: rate, Windows: int(windows), Window: time.Second, Full: windows%2 == 0}
		b := NewBucket(limit, now)
		for ; len(script) >= 4; script = script[4:] {
			now = now.Add(time.Duration(int8(script[1])) * 100 * time.Millisecond) // A clock may go back.
			n, wait := float64(binary.BigEndian.Uint16(script[2:]))*1000, time.Duration(0)
			switch script[0] % 5 {
			case 0:
				wait = b.Take(n, now)
			case 1:
				wait = b.TakeIfThere(n, now)
			case 2:
				wait = b.TakeUnlessOwing(n, now)
			case 3:
				wait = b.Owing(now)
			case 4:
				rate, next = next, rate
				limit.PerSecond = rate
				b.Alter(limit, now)
			}
			level, room := b.Level(now), b.Room(now)
			if wait < 0 || wait > Longest || wait%time.Millisecond != 0 || math.IsNaN(level) || math.IsNaN(room) || room < 0 || level > b.limit.most() {
				t.Fatalf("%+v: wait %v, level %v, room %v", b.limit, wait, level, room)
			}
		}
	})
}
