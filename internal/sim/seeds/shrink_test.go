package seeds

import (
	"strings"
	"testing"
	"time"
)

// needsThree breaks a rule once three of many faults have happened, which is found
// when all is calm, and another one otherwise.
func needsThree(w *World) {
	n, members := 0, w.Cast(5, 1)
	for range members {
		w.Apart(func() {
			w.Every(time.Second, func() {
				n++
				w.Tracef("fault %d", n)
			})
		})
	}
	for i := range 100 {
		w.After(time.Duration(i)*time.Second, func() { w.Chance(0.5) })
	}
	w.RunUntil(w.Chaos(100 * time.Second))
	if w.Calm = true; n >= 3 {
		w.Violated("%d faults, and then: %s", n, "rule 17 is broken")
	}
	w.Violated("%d faults, and then: %s", n, "another rule is broken")
}

func TestShrinkLeavesOutWhatTheViolationDoesNotNeed(t *testing.T) {
	s := Simulator{Simulate: needsThree, Default: 1}
	_, f := s.one("TestIt", 1, cut{}, 10)
	if !strings.HasPrefix(f.What, "3 faults, and then: rule 17") || strings.Count(f.Trace, "fault") != 3 {
		t.Errorf("shrunk to %s", f)
	}
	for _, want := range []string{"; it was: ", " -keep ", " -chaos ", "shrunk from "} {
		if !strings.Contains(f.Error(), want) {
			t.Errorf("%q is not in %s", want, f)
		}
	}
	s.TestShrinks(t, 3+4) // The members that they happen to, at most.
}

// A fault that comes late comes earlier, so that less happens before it.
func TestShrinkHasFaultsComeEarlier(t *testing.T) {
	s := Simulator{Simulate: func(w *World) {
		for i := range 1000 {
			w.After(time.Duration(i)*time.Second, func() {})
		}
		w.Every(100*time.Second, func() { w.Violated("a rule is broken") })
		w.RunUntil(w.Chaos(1000 * time.Second))
	}}
	if _, f := s.one("TestIt", 1, cut{}, 10); !strings.Contains(f.Replay, " -hurry ") {
		t.Errorf("shrunk: %s", f)
	}
}

// What is left out by hand is left out, and nothing else is.
func TestReplayIsNotShrunk(t *testing.T) {
	s := Simulator{Simulate: needsThree}
	c, err := parseCut("none", 10*time.Second, 2)
	if err != nil {
		t.Fatal(err)
	}
	_, f := s.one("TestIt", 1, c, 10)
	if !strings.HasPrefix(f.What, "0 faults") || f.Shrunk != "" || !strings.HasSuffix(f.Replay, " -keep none -chaos 10s -hurry 2") {
		t.Errorf("replayed: %s", f)
	}
	if _, err := parseCut("nonsense!", 0, 1); err == nil {
		t.Error("nonsense is taken for a fault")
	}
}

// An event that is left out changes nothing for those that do not follow from it.
func TestEventsHaveChancesOfTheirOwn(t *testing.T) {
	draw := func(first bool) (out []uint64) {
		w := newWorld(1, 0, cut{}, nil)
		w.After(time.Second, func() {
			if first {
				w.Rand.Uint64()
				w.After(0, func() { w.Rand.Uint64() })
			}
		})
		w.Apart(func() {
			if first {
				w.Rand.Uint64()
			}
		})
		for range 3 {
			w.After(2*time.Second, func() { out = append(out, w.Rand.Uint64()) })
		}
		w.RunUntil(time.Minute)
		return append(out, w.Rand.Uint64())
	}
	a, b := draw(true), draw(false)
	for i := range 3 {
		if a[i] != b[i] || i > 0 && a[i] == a[i-1] {
			t.Errorf("draw %d is %d, without the other event %d", i, a[i], b[i])
		}
	}
}
