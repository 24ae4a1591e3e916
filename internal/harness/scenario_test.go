package harness

import (
	"strings"
	"testing"
	"time"

	"muster/internal/machine"
)

// Timers fire when they are due, in order, each as it was armed last. One that was replaced or
// cancelled is kept as stale, for scenarios that fire it all the same.
func TestTimersFireInOrderUnlessTheyAreCancelled(t *testing.T) {
	var fired []string
	var s Scenario
	s = Begin(t, func(e machine.Event) {
		tm := e.(machine.TimerFired)
		fired = append(fired, tm.Key.Kind+" "+s.Now.Sub(s.Start).String())
		if tm.Key.Kind == "again" && tm.Seq == 5 {
			s.Printf("once more\n")
			s.Stale = append(s.Stale, Arm(s.Timers, []machine.Timer{{Key: tm.Key, Seq: 9, At: s.Now.Add(time.Second)}})...)
		}
	})
	timer := func(kind string, seq uint64, after time.Duration) machine.Timer {
		return machine.Timer{Key: machine.TimerKey{Kind: kind}, Seq: seq, At: s.Start.Add(after)}
	}
	s.Stale = Arm(s.Timers, []machine.Timer{
		timer("late", 1, time.Minute), timer("second", 3, 2*time.Second), timer("first", 2, 2*time.Second), timer("cancelled", 4, time.Second),
		timer("again", 5, 3*time.Second), timer("moved", 6, time.Second),
		{Key: machine.TimerKey{Kind: "cancelled"}, Seq: 7, Cancel: true}, timer("moved", 8, 5*time.Second),
	})
	s.Pass(5 * time.Second)
	if got, want := strings.Join(fired, ", "), "first 2s, second 2s, again 3s, again 4s, moved 5s"; got != want {
		t.Errorf("fired are %s, want %s", got, want)
	}
	if s.Now.Sub(s.Start) != 5*time.Second || len(s.Timers) != 1 || len(s.Stale) != 2 {
		t.Errorf("after %s armed are %v, stale %v", s.Now.Sub(s.Start), s.Timers, s.Stale)
	}
	if got := s.Outcome(); got != "after 3s:\nonce more\n" {
		t.Errorf("the outcome is %q", got)
	}
	if s.Forget(); len(s.Timers)+len(s.Stale) != 0 {
		t.Error("the timers outlive their core")
	}
}
