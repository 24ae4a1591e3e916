package seeds

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// A failure names its seed and how to see it again.
func TestFailureSaysHowToReplayIt(t *testing.T) {
	s := Simulator{Simulate: func(w *World) {
		w.Tracef("what happened")
		w.Violated("a rule is broken")
	}}
	_, f := s.one("TestIt", 17, cut{}, 10)
	for _, want := range []string{"what happened", "seed 17", "a rule is broken", "go test ./internal/sim/seeds -count=1 -run '^TestIt$' -args -seed 17 -n 1"} {
		if !strings.Contains(f.Error(), want) {
			t.Errorf("%q is not in %q", want, f.Error())
		}
	}
}

// A panic of what is simulated is a failure too, and one that does not come again
// says so.
func TestPanicIsFailure(t *testing.T) {
	runs := 0
	s := Simulator{Simulate: func(*World) {
		if runs++; runs == 1 {
			panic("oh")
		}
	}}
	_, f := s.one("TestIt", 1, cut{}, 10)
	if f == nil || !strings.Contains(f.What, "oh") || !strings.Contains(f.What, "in a second run") {
		t.Errorf("failure is %v", f)
	}
}

// Events happen in the order of their times, and of two at the same time the one
// that was planned first.
func TestEventsHappenInOrder(t *testing.T) {
	w := newWorld(1, 0, cut{}, nil)
	var got []int
	for i := range 200 {
		at := time.Duration(i*7%10) * time.Second
		w.At(at, func() {
			if w.Now != at {
				t.Errorf("what was planned for %s happens at %s", at, w.Now)
			}
			got = append(got, i*7%10*1000+i)
		})
	}
	w.RunUntil(4 * time.Second)
	if len(got) != 100 {
		t.Errorf("%d events have happened after half of the time", len(got))
	}
	w.RunUntil(time.Minute)
	if len(got) != 200 || !slices.IsSorted(got) {
		t.Errorf("%d events, in order %v", len(got), got)
	}
}

func TestLackingFindsWhatDidNotHappen(t *testing.T) {
	enough := Counts{"often": 3000, "rarely": 2}
	if got := (Counts{"often": 300}).Lacking(enough, 100); len(got) > 0 {
		t.Errorf("enough is not enough: %v", got)
	}
	if got := (Counts{"often": 299}).Lacking(enough, 1000); len(got) != 2 {
		t.Errorf("lacking is %v", got)
	}
}
