package lag

import (
	"testing"
	"time"
)

// While a partition has no leader, what is committed is known, and when it changed.
func TestCommitsOfWhatNobodyLeadsAreKnown(t *testing.T) {
	w := newWorld(t, 1<<20)
	l := w.log("orders", 0, 0)
	w.produce(l, 100, w.now)
	g := w.group("billing")
	k := key{"orders", 0}
	passes := func(n int) {
		for range n {
			w.now = w.now.Add(10 * time.Second)
			w.pass()
		}
	}
	one := func() PartitionLag { return w.tracker.Partitions("billing")[0] }
	g.committed[k] = 10
	passes(12)
	l.Offline = true
	passes(12)
	g.committed[k] = 20
	passes(1)
	if got := one(); got.Known || got.Committed != 20 || got.Lag != 0 || got.Verdict != Fine {
		t.Errorf("without a leader: %+v", got)
	}
	l.Offline = false
	passes(12) // Six minutes since the commit before, two since the last one.
	if got := one(); !got.Known || got.Committed != 20 || got.Lag != 80 || got.Verdict != Fine {
		t.Errorf("two minutes after it went on: %+v", got)
	}
	passes(20)
	if got := one(); !got.Verdict.Stuck() {
		t.Errorf("five minutes after it went on: %+v", got)
	}
	l.Offline = true
	g.committed[k] = 5
	passes(1)
	if got := one(); got.Committed != 5 {
		t.Errorf("%+v", got)
	}
	l.Offline = false
	passes(1)
	if got := one(); got.Verdict != Rewound || got.Lag != 95 {
		t.Errorf("it went back: %+v", got)
	}
}

func TestAPartitionThatWasNeverSeenHasItsCommit(t *testing.T) {
	w := newWorld(t, 1<<20)
	l := w.log("orders", 0, 0)
	l.Offline = true
	w.group("billing").committed[key{"orders", 0}] = 7
	w.pass()
	if got := w.tracker.Partitions("billing")[0]; got.Committed != 7 || got.Known {
		t.Errorf("%+v", got)
	}
	w.group("billing").committed[key{"orders", 0}] = 3
	w.now = w.now.Add(10 * time.Second)
	l.Offline = false
	w.produce(l, 10, w.now)
	w.pass()
	if got := w.tracker.Partitions("billing")[0]; got.Verdict != Fine || got.Lag != 7 {
		t.Errorf("at first sight: %+v", got)
	}
}

// While a partition has no leader no one sees how much is consumed. What was produced
// meanwhile does not count either: a group that gains on its producers still does.
func TestRatesLeaveOutWhatCameWhileNobodyLed(t *testing.T) {
	w, l, g := one(t)
	w.produce(l, 10_000, w.now)
	w.commit(g, l, 1)
	run := func(passes int) GroupLag {
		for range passes {
			w.step()
			w.produce(l, 10, w.now)
			w.commit(g, l, 12)
			w.pass()
		}
		return w.of("billing")
	}
	if got := run(40); got.CatchUp != Catching {
		t.Fatalf("%+v", got)
	}
	l.Offline = true
	run(12)
	l.Offline = false
	for range 30 {
		if got := run(1); got.CatchUp != Catching {
			t.Fatalf("%+v", got)
		}
	}
}

// A topic that was deleted and created again between two passes is another one, even if it
// has as many records.
func TestATopicThatWasCreatedAgainIsAnotherLog(t *testing.T) {
	for _, offline := range []bool{false, true} {
		w, l, g := one(t)
		l.ID = [16]byte{1}
		w.produce(l, 100, w.now)
		w.commit(g, l, 80)
		for range 12 {
			w.step()
			w.pass()
		}
		delete(w.logs, key{"orders", 0})
		w.step()
		again := w.log("orders", 0, 0)
		again.ID, again.Offline = [16]byte{2}, offline
		w.produce(again, 150, w.now)
		g.committed[key{"orders", 0}] = 10
		w.pass()
		if offline {
			again.Offline = false
			w.step()
			w.pass()
		}
		if got := w.of("billing"); got.Lag != 140 || got.Seconds > 20 || got.Verdicts[Rewound] != 0 || got.Rates.Produced != 0 {
			t.Errorf("offline %t: %+v", offline, got)
		}
		w.step()
		w.pass()
		w.check()
	}
}

// A pass over many groups takes a while, and whoever asks meanwhile sees all of them.
func TestGroupsAreSeenWhileAPassIsUnderWay(t *testing.T) {
	w, l, g := one(t)
	w.produce(l, 10, w.now)
	w.commit(g, l, 1)
	w.pass()
	count := func() (n int) {
		for range w.tracker.Groups() {
			n++
		}
		return n
	}
	w.tracker.Begin(w.now.Add(10 * time.Second))
	w.tracker.Group(Group{Name: "another"})
	if _, ok := w.tracker.Of("billing"); !ok || count() != 2 || len(w.tracker.Partitions("billing")) != 1 {
		t.Errorf("under way: %d groups, billing %t, %d partitions", count(), ok, len(w.tracker.Partitions("billing")))
	}
	w.tracker.End()
	if _, ok := w.tracker.Of("billing"); ok || count() != 1 || w.tracker.Partitions("billing") != nil {
		t.Errorf("when it has ended: %d groups, billing %t", count(), ok)
	}
}
