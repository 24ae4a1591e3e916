package lag

import (
	"testing"
	"time"
)

// A group that stands still from the first look on has a flat line of lag and becomes
// older, without a ring; once its lag changes there is one.
func TestAGroupThatNeverMovedHasAPast(t *testing.T) {
	w := newWorld(t, 1<<20)
	l := w.log("orders", 0, 0)
	w.produce(l, 10, w.now.Add(-time.Minute))
	g := w.group("billing")
	g.committed[key{"orders", 0}] = 4
	began := w.now
	for range 31 {
		w.pass()
		w.now = w.now.Add(10 * time.Second)
	}
	at := w.now.Add(-10 * time.Second) // Of the last pass.
	if w.tracker.groups["billing"].ring != nil || w.tracker.groups["billing"].positions[0].ring != nil {
		t.Fatal("there are rings")
	}
	for level, want := range []int{31, 3, 1} {
		points := w.tracker.Past("billing", level)
		if len(points) < want || len(points) > want+1 {
			t.Fatalf("level %d has %d points, want about %d", level, len(points), want)
		}
		step := time.Duration(levelStep[level]) * tenth
		if first := points[0].At; first.After(began) || began.Sub(first) >= step {
			t.Errorf("level %d begins at %v, want %v", level, first, began)
		}
		for i, p := range points {
			seen := p.At.Add(step)
			if seen.After(at) {
				seen = at
			}
			if age := seen.Sub(began).Seconds() + 60; p.Lag != 6 || p.Seconds < age-1 || p.Seconds > age+1 {
				t.Errorf("level %d: %+v, want an age of %v", level, p, age)
			}
			if i > 0 && p.At.Sub(points[i-1].At) != step {
				t.Errorf("level %d: %v after %v", level, p.At, points[i-1].At)
			}
		}
	}
	points := w.tracker.PartitionPast("billing", "orders", 0)
	if len(points) < 5 || len(points) > 7 {
		t.Fatalf("%+v", points)
	}
	for _, p := range points[1:] {
		if age := p.At.Sub(began).Seconds() + 60; p.Committed != 4 || p.Seconds < age-1 || p.Seconds > age+1 {
			t.Errorf("%+v, want an age of %v", p, age)
		}
	}
	w.produce(l, 1, w.now)
	w.pass()
	if w.tracker.groups["billing"].ring == nil {
		t.Error("the lag has changed, and there is no ring")
	}
}

// Nothing is made up of what is not known: before the log ended where it ends, and of a
// partition without a leader.
func TestAFlatPastBeginsWhereItIsKnown(t *testing.T) {
	w := newWorld(t, 0) // There is no room for rings.
	l := w.log("orders", 0, 0)
	w.produce(l, 10, w.now)
	w.group("billing").committed[key{"orders", 0}] = 4
	for i := range 12 {
		w.pass()
		w.now = w.now.Add(10 * time.Second)
		if i == 5 {
			w.produce(l, 1, w.now)
		}
	}
	if points := w.tracker.Past("billing", 0); len(points) != 6 || points[0].Lag != 7 {
		t.Errorf("%+v", points)
	}
	if points := w.tracker.Past("billing", 3); points != nil {
		t.Errorf("of no level: %+v", points)
	}
	l.Offline = true
	w.pass()
	if points := w.tracker.Past("billing", 0); points != nil {
		t.Errorf("without a leader: %+v", points)
	}
	if points := w.tracker.PartitionPast("billing", "orders", 0); points != nil {
		t.Errorf("without a leader: %+v", points)
	}
}
