package lag

import (
	"testing"
	"time"
)

// Of layout stream no one tells how many records came. A group that reads as many as come
// in turns, now more and now less, does not catch up, and one that gains on them does.
func TestRatesOfStreamsAreToldByTheLagAlone(t *testing.T) {
	for _, c := range []struct {
		name  string
		gains int64 // In two passes.
		want  CatchUp
	}{{"as many as come", 0, NotCatching}, {"more than come", 10, Catching}, {"fewer than come", -10, NotCatching}} {
		tracker := NewTracker(Limits{1 << 20, 0}, nil)
		now := time.Date(2024, 5, 6, 7, 8, 10, 0, time.UTC)
		const bits = 10
		lag, committed := int64(1000), now.UnixMilli()<<bits
		for pass := range 40 {
			if pass%2 == 0 {
				lag += 100
			} else {
				lag -= 100 + c.gains
			}
			now = now.Add(10 * time.Second)
			committed += 5000 << bits
			tracker.Begin(now)
			tracker.Log(Log{Topic: "t", Bounds: Bounds{0, (now.UnixMilli() + 3_600_000) << bits}, LastStable: None, TimeBits: bits})
			tracker.Group(Group{Name: "g", Members: 1, Positions: []Position{{Topic: "t", Committed: committed, Behind: &Count{Records: lag}, Owner: OwnerMember}}})
			tracker.End()
		}
		got, _ := tracker.Of("g")
		if got.CatchUp != c.want {
			t.Errorf("%s: %v, %+v", c.name, got.CatchUp, got.Rates)
		}
		if eta := time.Duration(lag*2/max(c.gains, 1)) * 10 * time.Second; c.want == Catching && (got.CatchUpTime < eta*8/10 || got.CatchUpTime > eta*12/10) {
			t.Errorf("%s: in %v, want about %v", c.name, got.CatchUpTime, eta)
		}
	}
}

// What a group that went back has before it did not come, nor did what was deleted unread
// get read.
func TestWhoGoesBackIsNotTakenForAProducer(t *testing.T) {
	tracker := NewTracker(Limits{1 << 20, 0}, nil)
	now := time.Date(2024, 5, 6, 7, 8, 9, 0, time.UTC)
	for pass := range 12 {
		now = now.Add(10 * time.Second)
		committed, behind := now.UnixMilli()<<10, int64(10)
		if pass >= 6 {
			committed, behind = 5<<10, 5000
		}
		if pass >= 9 {
			behind = 10
		}
		tracker.Begin(now)
		tracker.Log(Log{Topic: "t", Bounds: Bounds{0, now.UnixMilli()<<10 + 1000}, LastStable: None, TimeBits: 10})
		tracker.Group(Group{Name: "g", Members: 1, Positions: []Position{{Topic: "t", Committed: committed, Behind: &Count{Records: behind}}}})
		tracker.End()
	}
	if got, _ := tracker.Of("g"); got.Rates.Produced != 0 || got.Rates.Consumed != 0 || !got.Rates.Known {
		t.Errorf("%+v", got.Rates)
	}
}

// counts lets a group go on from pass to pass with so many records before it, and returns
// what is said after each.
func counts(each ...Count) (out []GroupLag) {
	tracker := NewTracker(Limits{1 << 20, 0}, nil)
	now := time.Date(2024, 5, 6, 7, 8, 10, 0, time.UTC)
	for i := range each {
		now = now.Add(10 * time.Second)
		tracker.Begin(now)
		tracker.Log(Log{Topic: "t", Bounds: Bounds{0, (now.UnixMilli() + 3_600_000) << 10}, LastStable: None, TimeBits: 10})
		tracker.Group(Group{Name: "g", Members: 1, Positions: []Position{{Topic: "t", Committed: now.UnixMilli() << 10, Behind: &each[i], Owner: OwnerMember}}})
		tracker.End()
		got, _ := tracker.Of("g")
		out = append(out, got)
	}
	return out
}

// A count that ends early, or waits for its turn, does not tell whether a group catches up.
func TestApproximateCountsTellNothingOfRates(t *testing.T) {
	var limit, turns, after []Count
	for i := range int64(40) {
		limit = append(limit, Count{100_000, true})
		turns = append(turns, Count{90_000 - i/3*300, i%3 != 0}) // Counted every third time.
		after = append(after, Count{5000, true})
	}
	for name, each := range map[string][]Count{"too many to count": limit, "counted in turn": turns, "perhaps none": {{0, true}}} {
		for i, got := range counts(each...) {
			if i > 0 && (got.CatchUp != Unknown || got.Rates.Known) || got.CatchUp == CaughtUp {
				t.Fatalf("%s, pass %d: %+v", name, i, got)
			}
		}
	}
	for range 12 {
		after = append(after, Count{Records: 1000})
	}
	got := counts(after...)
	if first := got[40]; first.CatchUp != Unknown {
		t.Errorf("when it is first counted: %+v", first)
	}
	if last := got[len(got)-1]; last.CatchUp != NotCatching || last.Rates != (Rates{Known: true}) || !last.Sparse {
		t.Errorf("it reads as fast as records come: %+v", last)
	}
}
