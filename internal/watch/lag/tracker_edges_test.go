package lag

import (
	"slices"
	"testing"
	"time"
)

func TestPartitionWithoutALeaderIsTheSameLogAfterwards(t *testing.T) {
	w, g, logs := rows(t, 1)
	w.commit(g, logs[0], 1<<30)
	w.step()
	w.pass()
	for pass := range 40 {
		w.produce(logs[0], 1, w.now)
		logs[0].Offline = pass == 20
		w.step()
		w.pass()
	}
	if got := w.of("g"); w.asked != 0 || got.Verdicts[NotFetching] != 1 || got.Seconds < 390 || got.Rates.Produced > 1 {
		t.Errorf("asked %d times, %+v", w.asked, got)
	}
	offline := w.tracker.now - 19*step
	for _, p := range w.tracker.logs[key{"t", 0}].table.points {
		if p.at == offline {
			t.Error("there is a point of when it had no leader")
		}
	}
}

func TestPositionsMayComeInAnyOrder(t *testing.T) {
	w, _, _ := rows(t, 3)
	w.tracker.Begin(w.now)
	for _, k := range sortedKeys(w.logs) {
		w.tracker.Log(w.logs[k].Log)
	}
	at := func(partition int32) Position { return Position{Topic: "t", Partition: partition, Committed: 9_999} }
	w.tracker.Group(Group{Name: "g", Positions: []Position{at(2), at(0), at(2), at(1)}})
	w.tracker.Group(Group{Name: "b"})
	w.tracker.Group(Group{Name: "a"})
	w.tracker.End()
	if got := w.of("g"); got.Lag != 3 || got.Total.Partitions != 3 {
		t.Errorf("%+v", got)
	}
	var names []string
	for g := range w.tracker.Groups() {
		names = append(names, g.Name)
	}
	if !slices.Equal(names, []string{"a", "b", "g"}) {
		t.Errorf("%v", names)
	}
	for range w.tracker.Groups() {
		break
	}
	w.step()
	w.tracker.Begin(w.now)
	w.tracker.End()
	for g := range w.tracker.Groups() {
		t.Errorf("%s was not seen", g.Name)
	}
	if got := w.tracker.Changes(time.Time{}, true, func(string) bool { return true }); len(got.Groups) != 0 {
		t.Errorf("%+v", got)
	}
	checkBytes(t, w.tracker)
}

func TestRecordsOfAWindowCameEvenly(t *testing.T) {
	w, _, logs := rows(t, 1)
	w.produce(logs[0], 100, w.now)
	w.step()
	w.pass()
	l := w.tracker.logs[key{"t", 0}]
	for offset, before := range map[int64]int64{10_000: 10_000, 10_025: 7_500, 10_099: 100} {
		if at, known := w.tracker.appended(l, offset); !known || w.now.UnixMilli()-at != before {
			t.Errorf("%d was appended %d ms ago, want %d", offset, w.now.UnixMilli()-at, before)
		}
	}
	if at, known := w.tracker.appended(l, 10_100); !known || at != w.now.UnixMilli() {
		t.Errorf("what is not there yet: %d", at)
	}
	if w.asked != 0 {
		t.Error("the table knows that")
	}
}

func TestOldPointsDoNotComeBack(t *testing.T) {
	r := newGroupRing(nil)
	for i := range tick(10) {
		r.add(hour+i*step, int64(i), 0)
	}
	r.add(hour+3*step, 1000, 0)
	for _, p := range r.points(0, plain) {
		if p.Lag > 9 {
			t.Errorf("%+v", p)
		}
	}
}

func TestFirstMinuteCountsWhole(t *testing.T) {
	var m meter
	began := hour + 50*second
	m.add(began+5*second, 600, 0)
	m.began = began
	if got := m.rates(began + 290*second); got.Consumed != 600.0/290 {
		t.Errorf("%v, want %v", got.Consumed, 600.0/290)
	}
}

func TestTableGivesRoomBack(t *testing.T) {
	var table table
	for i := range tick(330) {
		table.note(hour+i*step, int64(i), fullTable)
	}
	for i := tick(330); i < 340; i++ {
		table.note(hour+i*step, int64(i), 20)
	}
	if len(table.points) > 20+growth || cap(table.points) > 20+3*growth {
		t.Errorf("%d points, room for %d", len(table.points), cap(table.points))
	}
}

func TestWaitsWithoutLagAreNotLearned(t *testing.T) {
	// It reads at once what comes every two hours.
	p, _ := watch(7200, every(720, 7200), func(pass int) bool { return pass%720 == 719 })
	if p.patience() != stuckAfter {
		t.Errorf("the patience is %d minutes", p.patience()/minute)
	}
	p, _ = watch(7200, every(720, 7200), func(int) bool { return false })
	if p.patience() != stuckAfter {
		t.Errorf("without lag it is %d minutes", p.patience()/minute)
	}
	p, _ = watch(181, func(pass int) movement { return every(18, 180)(min(pass, 180)) }, always)
	if p.patience() < 10*minute {
		t.Errorf("after one quick commit it is %d minutes", p.patience()/minute)
	}
}

func TestTimeDoesNotGoBack(t *testing.T) {
	w, l, g := one(t)
	w.produce(l, 10, w.now.Add(-30*time.Minute))
	w.commit(g, l, 1)
	w.pass()
	before := w.of("billing").Seconds
	w.now = w.now.Add(-10 * time.Minute)
	w.pass()
	if got := w.of("billing").Seconds; got != before || before != 1800 {
		t.Errorf("%v s, then %v s", before, got)
	}
}

func TestTableGoesWithTheLastWhoReads(t *testing.T) {
	w, g, _ := rows(t, 2)
	delete(g.committed, key{"t", 1})
	w.step()
	w.pass()
	if w.tracker.logs[key{"t", 1}].table.points != nil || w.tracker.logs[key{"t", 0}].table.points == nil {
		t.Error("a table is there without a reader, or the other way round")
	}
	checkBytes(t, w.tracker)
}

func TestPartitionMayComeBackAfterLong(t *testing.T) {
	w, _, logs := rows(t, 1)
	delete(w.logs, key{"t", 0})
	for range 70 {
		w.step()
		w.pass()
	}
	if w.tracker.logs[key{"t", 0}].pass != 0 {
		t.Fatal("what was known of the partition is still there")
	}
	w.logs[key{"t", 0}] = logs[0]
	for range 3 {
		w.step()
		w.pass()
		w.check()
	}
}

func TestCommitsBeyondTheEndAreNotConsumption(t *testing.T) {
	w, g, _ := rows(t, 1)
	g.committed[key{"t", 0}] = 1 << 30
	for range 12 {
		w.step()
		w.pass()
	}
	if got := w.of("g"); got.Lag != 0 || got.Rates.Consumed > 9_990.0/110 {
		t.Errorf("%+v", got)
	}
}

func TestAgeGrowsByASecondEachSecondAtMost(t *testing.T) {
	w, g, logs := rows(t, 1)
	logs[0].Retention.Age = 24 * time.Hour
	for range 60 {
		w.step()
		w.produce(logs[0], 1, w.now)
		w.commit(g, logs[0], 1<<30)
		w.pass()
	}
	g.committed[key{"t", 0}] = 10 // It goes back by ten minutes.
	w.step()
	w.pass()
	if got := w.of("g"); got.Seconds < 500 || got.OvertakenIn != got.Margin {
		t.Errorf("%+v", got)
	}
}

func TestStreamsAreNotOvertakenBySize(t *testing.T) {
	w := newWorld(t, 1<<20)
	l, g := w.log("clicks", 0, 10), w.group("g")
	l.Retention = Retention{Bytes: 1000, Size: 999}
	for range 60 {
		w.step()
		w.produce(l, 10, w.now)
		w.commit(g, l, 5)
		w.pass()
	}
	if got := w.of("g"); got.Lag == 0 || got.OvertakenIn < 1e18 {
		t.Errorf("%+v", got)
	}
	g.uncounted = true
	w.step()
	w.pass()
	if got := w.of("g"); !got.Unknown || got.CatchUp != Unknown {
		t.Errorf("nobody knows the lag: %+v", got)
	}
}
