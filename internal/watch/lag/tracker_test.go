package lag

import (
	"math"
	"testing"
	"time"
)

// one is a world with a group and a partition.
func one(t *testing.T) (*world, *worldLog, *worldGroup) {
	w := newWorld(t, 1<<20)
	return w, w.log("orders", 0, 0), w.group("billing")
}

func (w *world) of(name string) GroupLag {
	w.t.Helper()
	got, ok := w.tracker.Of(name)
	if !ok {
		w.t.Fatalf("there is no %s", name)
	}
	return got
}

func TestGroupCatchesUp(t *testing.T) {
	w, l, g := one(t)
	w.produce(l, 10_000, w.now)
	w.commit(g, l, 1)
	run := func(passes, produced, consumed int) GroupLag {
		for range passes {
			w.step()
			w.produce(l, produced, w.now)
			w.commit(g, l, consumed)
			w.pass()
		}
		return w.of("billing")
	}
	w.pass()
	if got := run(3, 10, 20); got.CatchUp != Unknown {
		t.Errorf("after half a minute: %+v", got)
	}
	got := run(37, 10, 20)
	if got.CatchUp != Catching || math.Abs(got.Rates.Produced-1) > 0.05 || math.Abs(got.Rates.Consumed-2) > 0.1 {
		t.Errorf("%+v", got)
	}
	if want := float64(got.Lag) / 1; math.Abs(got.CatchUpTime.Seconds()-want) > 0.06*want {
		t.Errorf("%v, want about %v s", got.CatchUpTime, want)
	}
	if got := run(40, 10, 10); got.CatchUp != NotCatching || got.CatchUpTime != 0 {
		t.Errorf("as fast as producers: %+v", got)
	}
	l.trim(5000) // Deleted unread: that is no progress.
	if got := run(1, 10, 10); math.Abs(got.Rates.Consumed-1) > 0.1 {
		t.Errorf("after records were deleted: %+v", got)
	}
	if got := run(1, 0, 1<<30); got.CatchUp != CaughtUp || got.Lag != 0 || got.Seconds != 0 {
		t.Errorf("at the end: %+v", got)
	}
}

func TestRetentionWillOvertakeAGroup(t *testing.T) {
	w, l, g := one(t)
	l.Retention.Age = time.Hour
	began := w.now
	w.produce(l, 1, w.now)
	w.commit(g, l, 1)
	for range 60 { // The group stands still for ten minutes.
		w.step()
		w.produce(l, 10, w.now)
		w.pass()
	}
	got := w.of("billing")
	if want := time.Hour.Seconds() - w.now.Sub(began).Seconds() + 10; math.Abs(got.Margin-want) > 20 || math.Abs(got.OvertakenIn-want) > 20 {
		t.Errorf("standing still: %v and %v, want %v", got.Margin, got.OvertakenIn, want)
	}
	for range 60 { // It reads half as fast as producers write.
		w.step()
		w.produce(l, 10, w.now)
		w.commit(g, l, 5)
		w.pass()
	}
	got = w.of("billing")
	if want := 2 * got.Margin; math.Abs(got.OvertakenIn-want) > 0.1*want {
		t.Errorf("at half the speed: %v, want %v", got.OvertakenIn, want)
	}
	p := w.tracker.Partitions("billing")[0]
	if p.Margin != got.Margin || p.OvertakenIn != got.OvertakenIn {
		t.Errorf("the partition has %v and %v", p.Margin, p.OvertakenIn)
	}
	l.Retention = Retention{Bytes: 100_000, Size: l.End * 50} // 2,000 records.
	w.step()
	w.produce(l, 10, w.now)
	w.commit(g, l, 5)
	w.pass()
	got = w.of("billing")
	if want := (2000 - float64(got.Lag)) / 0.5; math.Abs(got.OvertakenIn-want) > 0.1*want || !math.IsInf(got.Margin, 1) {
		t.Errorf("by size: %v, want %v", got.OvertakenIn, want)
	}
	for range 60 {
		w.step()
		w.produce(l, 10, w.now)
		w.commit(g, l, 11)
		w.pass()
	}
	if got = w.of("billing"); !math.IsInf(got.OvertakenIn, 1) {
		t.Errorf("keeping up: %v", got.OvertakenIn)
	}
}

func TestStuckPartitionIsToldByWhoFetches(t *testing.T) {
	w, l, g := one(t)
	w.produce(l, 10, w.now)
	w.commit(g, l, 1)
	k := key{"orders", 0}
	for range 40 {
		w.pass()
		w.step()
	}
	for _, c := range []struct {
		name string
		set  func()
		want Verdict
	}{
		{"owned, never fetched", func() {}, NotFetching},
		{"nobody has it", func() { g.owner = OwnerNone }, NoOwner},
		{"fetches", func() { g.owner, g.fetched[k] = OwnerMember, w.now }, NotCommitting},
		{"commits the same", func() { g.at[k] = w.now }, Stalled},
		{"rebalances", func() { g.owner = OwnerUnknown }, Stalled},
		{"no members", func() { g.members = 0 }, Stopped},
		{"a transaction is open", func() { g.members, g.owner, l.LastStable = 1, OwnerMember, 1 }, Fine},
		{"and ends", func() { l.LastStable = 10 }, Stalled},
		{"went back", func() { g.committed[k] = 0 }, Rewound},
	} {
		c.set()
		w.pass()
		got := w.of("billing")
		if got.Verdicts[c.want] != 1 || w.tracker.Partitions("billing")[0].Verdict != c.want || (got.Stuck == 1) != c.want.Stuck() {
			t.Errorf("%s: %+v, want %v", c.name, got.Verdicts, c.want)
		}
	}
}

func TestTimestampsAreClampedIntoWhatTheBrokerSaw(t *testing.T) {
	for _, c := range []struct {
		name   string
		lie    time.Duration
		at     time.Duration // Before the first pass.
		missed time.Duration // Between the first and the second pass.
		want   float64       // Seconds, at the second pass.
	}{
		{"the truth", 0, time.Hour, 10 * time.Second, 3610},
		{"a clock that is fast", 3 * time.Hour, time.Hour, 10 * time.Second, 10},
		{"while passes were missed, the truth", 0, -1800 * time.Second, time.Hour, 1800},
		{"an old CreateTime", -1000 * time.Hour, -1800 * time.Second, time.Hour, 3600},
		{"a time to come", 1000 * time.Hour, -1800 * time.Second, time.Hour, 0},
	} {
		w, l, g := one(t)
		w.produce(l, 1, w.now.Add(-2*time.Hour))
		w.commit(g, l, 1)
		first := w.now
		if c.at > 0 {
			w.produce(l, 1, w.now.Add(-c.at))
		}
		w.pass()
		w.now = first.Add(c.missed)
		if c.at < 0 {
			w.produce(l, 1, first.Add(-c.at))
		}
		if c.lie != 0 {
			l.records[1].at += c.lie.Milliseconds()
			w.tracker.groups["billing"].positions[0].dated = false
		}
		w.pass()
		if got := w.of("billing"); math.Abs(got.Seconds-c.want) > 1 || got.SecondsAtLeast {
			t.Errorf("%s: %v s, want %v", c.name, got.Seconds, c.want)
		}
	}
}

func TestRecordsAreAskedForSeldom(t *testing.T) {
	w, l, g := one(t)
	w.produce(l, 100, w.now.Add(-time.Hour))
	w.commit(g, l, 10)
	for range 5 {
		w.pass()
		w.step()
	}
	if w.asked != 1 {
		t.Errorf("asked %d times for one record that is older than the table", w.asked)
	}
	w.commit(g, l, 10)
	w.pass()
	if w.asked != 2 {
		t.Errorf("asked %d times after the group moved", w.asked)
	}
	w.commit(g, l, 1<<30)
	for range 50 {
		w.produce(l, 3, w.now)
		w.step()
		w.pass()
		w.commit(g, l, 1)
	}
	if w.asked != 2 {
		t.Errorf("asked %d times for what the table knows", w.asked)
	}
}

func TestRecordsAreNotAskedForTooOften(t *testing.T) {
	w := newWorld(t, 1<<20)
	for i := range 10 {
		l := w.log("t", int32(i), 0)
		w.produce(l, 10, w.now.Add(-time.Hour))
		w.commit(w.group("g"), l, 1)
	}
	w.tracker.maxAsked = 4
	for pass, want := range []int{4, 8, 10, 10} {
		w.pass()
		if got := w.of("g"); w.asked != want || got.SecondsAtLeast != (pass < 2) || got.Seconds < 3600 {
			t.Errorf("pass %d: asked %d times, %+v", pass, w.asked, got)
		}
		w.step()
	}
}

func TestPartitionsThatAreNotThereHaveNoLag(t *testing.T) {
	w, l, g := one(t)
	w.produce(l, 10, w.now)
	w.commit(g, l, 4)
	other := w.log("other", 0, 0)
	w.produce(other, 10, w.now)
	w.commit(g, other, 3)
	g.committed[key{"third", 2}] = None
	w.pass()
	if got := w.of("billing"); got.Lag != 13 || got.Max != 7 || got.Unknown || got.Uncommitted != 1 || got.Total.Partitions != 2 {
		t.Errorf("%+v", got)
	}
	other.Offline = true
	w.step()
	w.pass()
	if got := w.of("billing"); got.Lag != 6 || !got.Unknown || got.CatchUp != Unknown {
		t.Errorf("without a leader: %+v", got)
	}
	if got := w.tracker.Partitions("billing"); len(got) != 2 || got[1].Known || got[1].Committed != 3 {
		t.Errorf("without a leader: %+v", got)
	}
	delete(w.logs, key{"other", 0})
	w.step()
	w.pass()
	if got := w.of("billing"); got.Lag != 6 || got.Unknown {
		t.Errorf("without the topic: %+v", got)
	}
	checkBytes(t, w.tracker)
}

func TestStreamsAreNotMeasuredInOffsets(t *testing.T) {
	w := newWorld(t, 1<<20)
	l, g := w.log("clicks", 0, 20), w.group("billing")
	w.produce(l, 5, w.now.Add(-time.Minute))
	w.commit(g, l, 2)
	w.pass()
	if got := w.of("billing"); got.Lag != 3 || got.Unknown {
		t.Errorf("%+v", got)
	}
	g.uncounted = true
	w.step()
	w.pass()
	if got := w.of("billing"); got.Lag != 0 || !got.Unknown || w.tracker.Partitions("billing")[0].Known {
		t.Errorf("not counted: %+v", got)
	}
	w.commit(g, l, 10)
	w.pass()
	if got := w.of("billing"); got.Lag != 0 || got.Unknown {
		t.Errorf("at the end there is nothing to count: %+v", got)
	}
	g.uncounted = false
	for range 31 {
		w.step()
		w.produce(l, 20, w.now)
		w.commit(g, l, 10)
		w.pass()
	}
	if got := w.of("billing"); math.Abs(got.Rates.Consumed-1) > 0.1 || math.Abs(got.Rates.Produced-2) > 0.2 {
		t.Errorf("%+v", got.Rates)
	}
}

func TestAnotherLogOfTheSameNameBeginsAnew(t *testing.T) {
	w, l, g := one(t)
	w.produce(l, 100, w.now)
	w.commit(g, l, 50)
	w.pass()
	delete(w.logs, key{"orders", 0})
	w.now = w.now.Add(time.Hour)
	again := w.log("orders", 0, 0)
	w.produce(again, 60, w.now)
	w.pass()
	if got := w.of("billing"); got.Lag != 10 || got.Seconds > 20 || got.Verdicts[Rewound] != 0 {
		t.Errorf("%+v", got)
	}
	w.step()
	g.committed[key{"orders", 0}] = 55
	w.pass()
	w.check()
}

func TestTimeStandsStillWhileTheClockIsBack(t *testing.T) {
	w, l, g := one(t)
	w.produce(l, 100, w.now)
	w.commit(g, l, 50)
	w.pass()
	w.now = w.now.Add(-time.Minute)
	w.commit(g, l, 1)
	w.pass()
	if got := w.of("billing"); got.Lag != 49 || got.Seconds < 0 {
		t.Errorf("%+v", got)
	}
	if got := w.tracker.History("billing", 0); len(got) != 1 {
		t.Errorf("%v", got)
	}
}
