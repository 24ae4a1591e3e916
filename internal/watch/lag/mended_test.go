package lag

import (
	"slices"
	"testing"
	"time"

	"muster/internal/watch/history"
)

// passes makes a number of passes, ten seconds apart.
func (w *world) passes(n int) {
	for range n {
		w.step()
		w.pass()
	}
}

// The end of a transaction has an offset and is nothing to read: who stays before it has
// lag as Kafka counts it, and is not behind.
func TestWhoIsBeforeTheEndOfATransactionIsNotBehind(t *testing.T) {
	w := newWorld(t, 1<<20)
	l, g := w.log("t", 0, 0), w.group("g")
	l.Retention.Age = time.Hour
	w.produce(l, 3, w.now)
	w.commit(g, l, 2)
	w.pass()
	l.Tail = 1
	for members := range 2 {
		g.members = members
		w.passes(60)
		got := w.of("g")
		if got.Lag != 1 || got.Left || got.Seconds != 0 || got.CatchUp != CaughtUp || got.wrong() {
			t.Errorf("with %d members: %+v", members, got)
		}
		if p := w.tracker.Partitions("g")[0]; p.Verdict != Fine || p.Seconds != 0 || p.SecondsAtLeast || p.Lag != 1 {
			t.Errorf("with %d members: %+v", members, p)
		}
	}
	w.tracker.Begin(w.now.Add(10 * time.Second))
	w.tracker.Log(l.Log)
	if got := w.tracker.Quiet(w.tracker.Keep("g")); got != Resting {
		t.Errorf("it is %v", got)
	}
	w.produce(l, 1, w.now)
	l.Tail = 0
	w.passes(1)
	if got := w.of("g"); !got.Left || got.Lag != 2 || got.Seconds > 20 {
		t.Errorf("after another record: %+v", got)
	}
	g.members = 0
	w.passes(40)
	if got := w.of("g"); !got.Unread() || got.Seconds > 420 {
		t.Errorf("after another record: %+v", got)
	}
}

// Where a topic was created anew, nothing is left of what its predecessor ended with.
func TestAnotherLogHasNoHole(t *testing.T) {
	l := &log{}
	l.set(Log{Bounds: Bounds{End: 10}, Tail: 2}, 1, 1)
	l.set(Log{Bounds: Bounds{End: 20}}, 2, 2)
	if got := []int64{l.beyondHole(7), l.beyondHole(8), l.beyondHole(9), l.beyondHole(10)}; !slices.Equal(got, []int64{7, 10, 10, 10}) {
		t.Errorf("from 7 to 10 on: %v", got)
	}
	l.set(Log{ID: [16]byte{1}, Bounds: Bounds{End: 30}}, 3, 3)
	if got := l.beyondHole(8); got != 8 {
		t.Errorf("in another log: %d", got)
	}
}

// No one stands still in a time in which no one could look.
func TestTimeWithoutALookIsNoStanding(t *testing.T) {
	for name, away := range map[string]func(*world, *worldLog, time.Duration){
		"the partition has no leader": func(w *world, l *worldLog, d time.Duration) {
			l.Offline = true
			w.passes(int(d / (10 * time.Second)))
			l.Offline = false
		},
		"the group is not seen": func(w *world, _ *worldLog, d time.Duration) {
			g := w.groups["g"]
			delete(w.groups, "g")
			w.passes(int(d / (10 * time.Second)))
			w.groups["g"] = g
		},
	} {
		w := newWorld(t, 1<<20)
		l, g := w.log("t", 0, 0), w.group("g")
		w.produce(l, 5, w.now)
		w.commit(g, l, 1)
		w.pass()
		for range 18 { // It has lag all the time, and gets on.
			w.step()
			w.produce(l, 1, w.now)
			w.commit(g, l, 1)
			w.pass()
		}
		w.passes(18) // Three minutes of five.
		away(w, l, 8*time.Minute)
		w.passes(6)
		if got := w.of("g"); got.Stuck != 0 {
			t.Errorf("%s: it is stuck after four minutes: %+v", name, got)
		}
		w.passes(9)
		if got := w.of("g"); got.Stuck != 1 {
			t.Errorf("%s: it is not stuck after five and a half: %+v", name, got)
		}
	}
}

// What retention will do to a group is told of those that stand or are late, not of one that
// was seen for the first time, or keeps up.
func TestRetentionIsNoDangerToWhoKeepsUp(t *testing.T) {
	w := newWorld(t, 1<<20)
	l, g := w.log("t", 0, 0), w.group("g")
	l.Retention.Age = time.Hour
	w.produce(l, 10, w.now)
	w.commit(g, l, 1)
	w.pass()
	w.passes(3)
	if got := w.of("g"); got.OvertakenIn < 1e9 {
		t.Errorf("at first sight: %+v", got)
	}
	for range 120 { // It commits every half minute, and is a few seconds behind each time.
		w.passes(3)
		w.produce(l, 3, w.now.Add(-15*time.Second))
		w.commit(g, l, 3)
		w.pass()
		if got := w.of("g"); got.wrong() {
			t.Fatalf("it keeps up: %+v", got)
		}
	}
	w.passes(40)
	if got := w.of("g"); !got.Overtaken() {
		t.Errorf("it stands: %+v", got)
	}
}

// By size, too, one that reads what is produced does not fall behind.
func TestSizeIsNoDangerToWhoKeepsUp(t *testing.T) {
	w := newWorld(t, 1<<20)
	l, g := w.log("t", 0, 0), w.group("g")
	l.Retention.Bytes, l.Retention.Size = 1000, 1000
	w.produce(l, 3000, w.now)
	w.commit(g, l, 1500)
	w.pass()
	for range 100 {
		w.step()
		w.produce(l, 10, w.now)
		l.trim(10)
		w.commit(g, l, 10)
		w.pass()
		if in := w.of("g").OvertakenIn; in < 1e9 {
			t.Fatalf("it keeps up and is overtaken in %v", in)
		}
	}
}

// What is known of the past of a group that has committed nothing does not say that
// retention takes it anything.
func TestARestoredGroupHasNothingToLose(t *testing.T) {
	w := newWorld(t, 1<<20)
	w.group("g")
	w.pass()
	w.tracker.Restore(w.then(0, history.Group{Name: "g", Lag: 7}))
	if got := w.of("g"); got.wrong() || got.Margin < 1e9 || got.OvertakenIn < 1e9 {
		t.Errorf("%+v", got)
	}
}

// Restored rings take the place of those that rest, not of busy ones.
func TestWhatIsRestoredTakesNoPlaceOfTheBusy(t *testing.T) {
	w := newWorld(t, 1<<20)
	l := w.log("t", 0, 0)
	for _, name := range []string{"busy", "old"} {
		w.commit(w.group(name), l, 0)
	}
	w.pass()
	w.produce(l, 5, w.now)
	w.groups["old"].committed[key{"t", 0}] = 5 // Only the lag of the other has changed.
	w.passes(1)
	if w.tracker.groups["busy"].ring == nil || w.tracker.groups["old"].ring != nil {
		t.Fatal("the rings are others than the test needs")
	}
	w.tracker.max = w.tracker.bytes + groupRingSize/2
	for w.tracker.partitions.first != nil {
		w.tracker.dropPartitionRing(w.tracker.partitions.first.item.owner)
	}
	w.tracker.max = w.tracker.bytes + groupRingSize/2
	w.tracker.Restore(w.then(time.Minute, history.Group{Name: "old", Lag: 7}))
	if w.tracker.groups["busy"].ring == nil || w.tracker.groups["old"].ring != nil {
		t.Error("what is restored took the place of a ring that has just moved")
	}
}

// While a partition has no leader, no one knows the lag, and none is drawn.
func TestNoLagIsDrawnThatNobodyKnows(t *testing.T) {
	w := newWorld(t, 1<<20)
	a, b, g := w.log("t", 0, 0), w.log("t", 1, 0), w.group("g")
	w.commit(g, a, 0)
	w.commit(g, b, 0)
	w.pass()
	w.produce(a, 5, w.now)
	w.produce(b, 50, w.now)
	w.passes(3)
	b.Offline = true
	w.passes(3)
	for _, p := range w.tracker.History("g", 0) {
		if p.Lag != 55 && p.Lag != 0 || p.At.After(w.now.Add(-25*time.Second)) {
			t.Errorf("drawn is %+v", p)
		}
	}
}

// A count of nothing in a stream whose last records were deleted stands as long as nothing
// moves.
func TestALagOfStreamsStaysKnown(t *testing.T) {
	w := newWorld(t, 1<<20)
	l, g := w.log("t", 0, 10), w.group("g")
	w.produce(l, 9, w.now)
	w.commit(g, l, 4)
	w.pass()
	w.step()
	w.commit(g, l, 2)
	l.records = l.records[:6] // The rest was deleted by someone else.
	w.pass()
	for range 20 {
		w.step()
		w.tracker.Begin(w.now)
		w.tracker.Log(l.Log)
		k := w.tracker.Keep("g")
		if q := w.tracker.Quiet(k); q != Loud {
			w.tracker.Again(k, q)
		} else {
			w.tracker.Group(w.facts("g"))
		}
		w.tracker.End()
		if got := w.of("g"); got.Unknown || got.Lag != 0 {
			t.Fatalf("%+v", got)
		}
	}
}

// What is written at the end of a broker has the groups, too, that the last pass had not
// come to.
func TestChangesHaveWhatAPassHadNotComeTo(t *testing.T) {
	w := newWorld(t, 1<<20)
	w.commit(w.group("g"), w.log("t", 0, 0), 0)
	w.pass()
	w.tracker.Begin(w.now.Add(10 * time.Second))
	if got := w.tracker.Changes(time.Time{}, true, func(string) bool { return true }); len(got.Groups) != 1 {
		t.Errorf("%+v", got)
	}
}
