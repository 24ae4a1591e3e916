package lag

import (
	"testing"
	"time"

	"muster/internal/watch/history"
)

// then is a record of some time ago.
func (w *world) then(ago time.Duration, groups ...history.Group) *history.Record {
	return &history.Record{Time: w.now.Add(-ago).UnixMilli(), Groups: groups}
}

func lags(points []Point) (out []int64) {
	for _, p := range points {
		out = append(out, p.Lag)
	}
	return out
}

func TestHistoryIsRestored(t *testing.T) {
	w, l, g := one(t)
	w.produce(l, 100, w.now)
	w.commit(g, l, 1)
	w.tracker.Restore(w.then(time.Hour, history.Group{Name: "billing", Lag: 1})) // Nothing is known yet.
	w.pass()
	past := func(lag int64) history.Group { return history.Group{Name: "billing", Lag: lag, Age: 1000 * lag} }
	w.tracker.Restore(w.then(3*time.Hour, past(30), history.Group{Name: "gone", Lag: 5}))
	w.tracker.Restore(w.then(2*time.Hour, past(20)))
	w.step()
	w.commit(g, l, 9) // A pass in between makes a point of its own.
	w.pass()
	w.tracker.Restore(w.then(time.Hour, past(10)))
	w.tracker.Restore(w.then(8*24*time.Hour, past(77))) // Too old.
	w.tracker.Restore(w.then(72*time.Hour, past(78)))   // Older than the ring.
	w.tracker.Restore(w.then(-time.Hour, past(79)))     // A clock that was wrong.
	w.tracker.Restore(w.then(0, past(80)))              // What was seen stands.
	w.tracker.Restore(w.then(3*time.Hour, past(81)))    // Likewise.
	points := w.tracker.History("billing", 2)
	if got, want := lags(points), []int64{30, 20, 10, 90}; len(got) != 4 || got[0] != want[0] || got[1] != want[1] || got[2] != want[2] || got[3] != want[3] {
		t.Fatalf("%v, want %v", got, want)
	}
	if ago := w.now.Sub(points[0].At); ago < 3*time.Hour || ago > 3*time.Hour+16*time.Minute || points[0].Seconds != 30 {
		t.Errorf("%+v, %v ago", points[0], ago)
	}
	if len(w.tracker.History("gone", 2)) != 0 {
		t.Error("a group that is gone has a history")
	}
	if got := w.tracker.Bytes(); got > 1<<20 {
		t.Errorf("%d bytes", got)
	}
}

func TestADeletedGroupsPastIsNotRestored(t *testing.T) {
	w, l, g := one(t)
	w.produce(l, 100, w.now)
	w.commit(g, l, 1)
	w.pass()
	w.tracker.Restore(w.then(3*time.Hour, history.DeletedGroup("billing"))) // Of which nothing was known.
	w.tracker.Restore(w.then(3*time.Hour, history.Group{Name: "billing", Lag: 30}))
	w.tracker.Restore(w.then(2*time.Hour, history.DeletedGroup("billing")))
	w.tracker.Restore(w.then(time.Hour, history.Group{Name: "billing", Lag: 10}))
	if got := lags(w.tracker.History("billing", 2)); len(got) != 1 || got[0] != 10 {
		t.Errorf("%v", got)
	}
}

func TestWithoutRoomNothingIsRestored(t *testing.T) {
	w, l, g := one(t)
	w.restart(1500)
	w.produce(l, 100, w.now)
	w.commit(g, l, 1)
	w.pass()
	before := w.tracker.Bytes()
	w.tracker.Restore(w.then(time.Hour, history.Group{Name: "billing", Lag: 10}))
	if w.tracker.Bytes() != before || len(w.tracker.History("billing", 2)) != 0 {
		t.Errorf("%d bytes, before %d", w.tracker.Bytes(), before)
	}
}
