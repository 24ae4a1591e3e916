package lag

import (
	"testing"
	"time"
)

// old is a world with one group that is behind by records from before the first pass.
func old(t *testing.T) (*world, *worldLog, *worldGroup) {
	w, l, g := one(t)
	for i := range 10 {
		w.produce(l, 1, w.now.Add(time.Duration(i-20)*time.Hour))
	}
	w.commit(g, l, 4)
	w.pass()
	return w, l, g
}

func TestWhatWasTrimmedOnceIsAskedForOnce(t *testing.T) {
	w, l, _ := old(t)
	l.trim(6)
	for range 5 {
		w.step()
		w.pass()
	}
	if got := w.tracker.Partitions("billing")[0]; w.asked != 2 || got.Seconds < 13*3600 || got.Seconds > 14*3600+60 {
		t.Errorf("asked %d times: %+v", w.asked, got)
	}
}

func TestWhatWasCommittedUnseenHasItsOwnAge(t *testing.T) {
	w, l, g := old(t)
	l.Offline = true
	w.step()
	w.commit(g, l, 3)
	w.pass()
	l.Offline = false
	w.step()
	w.pass()
	if got := w.tracker.Partitions("billing")[0]; got.Lag != 3 || got.Seconds < 13*3600 || got.Seconds > 13*3600+60 {
		t.Errorf("%+v", got)
	}
}

func TestWhoWouldReadDeletedRecordsIsHeldBackByWhereTheLogBegins(t *testing.T) {
	w, l, g := one(t)
	w.produce(l, 10, w.now)
	w.commit(g, l, 1)
	l.trim(6)
	l.LastStable = 6
	for range 60 {
		w.step()
		w.pass()
	}
	if got := w.of("billing"); got.Stuck != 0 {
		t.Errorf("%+v", got)
	}
}
