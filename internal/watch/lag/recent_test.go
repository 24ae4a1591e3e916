package lag

import (
	"slices"
	"testing"
	"time"
)

// Recent is held against History, which has all points with their times.
func TestRecentIsTheLargestOfEachMinute(t *testing.T) {
	w := newWorld(t, 1<<20)
	l, g := w.log("orders", 0, 0), w.group("billing")
	w.produce(l, 1, w.now)
	w.commit(g, l, 1)
	w.pass()
	if got := w.tracker.Recent("billing"); got != nil {
		t.Errorf("of a group that never moved: %v", got)
	}
	for i := range 400 {
		w.step()
		if i == 300 {
			w.now = w.now.Add(7 * time.Minute) // No one looked.
		}
		w.produce(l, 1, w.now)
		if i%50 == 49 {
			w.commit(g, l, 1000)
		}
		w.pass()
		if got, want := w.tracker.Recent("billing"), recentOf(w); !slices.Equal(got, want) {
			t.Fatalf("after %d passes:\n%v, want\n%v", i+1, got, want)
		}
	}
	if got := w.tracker.Recent("billing"); len(got) != 30 || !slices.Contains(got, Unseen) {
		t.Errorf("%v", got)
	}
	if got := w.tracker.Recent("nobody"); got != nil {
		t.Errorf("of nobody: %v", got)
	}
}

func recentOf(w *world) []float64 {
	var out []float64
	newest := w.tracker.time(w.tracker.now).Truncate(time.Minute)
	for back := 29; back >= 0; back-- {
		largest := float64(Unseen)
		for _, p := range w.tracker.History("billing", 0) {
			if p.At.Truncate(time.Minute).Equal(newest.Add(-time.Duration(back) * time.Minute)) {
				largest = max(largest, p.Seconds)
			}
		}
		if largest != Unseen || out != nil {
			out = append(out, largest)
		}
	}
	return out
}
