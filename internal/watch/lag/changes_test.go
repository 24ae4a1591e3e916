package lag

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"muster/internal/watch/history"
)

func TestChangesAreWhatHasMoved(t *testing.T) {
	w := crowd(t, 4, 1<<20)
	l := w.log("a", 0, 0)
	w.produce(l, 9, w.now)
	w.commit(w.group("g001"), l, 2)
	w.commit(w.group("g001"), w.log("t", 0, 0), 3)
	every := func(string) bool { return true }
	w.step()
	w.pass()
	if got := w.tracker.Changes(time.Time{}, false, every); len(got.Groups) != 4 || got.Time != w.now.UnixMilli() || got.Whole {
		t.Errorf("after the start: %+v", got)
	}
	w.step()
	since := w.now
	w.move(1, 5)
	w.produce(w.log("t", 2, 0), 5, w.now) // Its group stands still.
	w.step()
	w.pass()
	w.step()
	w.pass()
	got := w.tracker.Changes(since, false, every)
	age := func(i int) int64 { return int64(w.of(fmt.Sprintf("g%03d", i)).Seconds * 1000) }
	if want := []history.Group{
		{Name: "g001", Lag: 7 + 20_000 - 15 + 20_000 - 3, Age: age(1), Topics: []history.Topic{{Name: "t", Positions: []history.Position{{Partition: 1, Committed: 15}}}}},
		{Name: "g002", Lag: 20_005 - 10, Age: age(2)},
	}; !reflect.DeepEqual(got.Groups, want) {
		t.Errorf("%+v, want %+v", got.Groups, want)
	}
	if got := w.tracker.Changes(since.Add(10*time.Second), false, every); len(got.Groups) != 2 || len(got.Groups[0].Topics) != 1 {
		t.Errorf("since the very pass: %+v", got)
	}
	if got := w.tracker.Changes(w.now.Add(time.Hour), false, every); len(got.Groups) != 0 {
		t.Errorf("of the future: %+v", got)
	}
	got = w.tracker.Changes(w.now.Add(time.Hour), true, func(name string) bool { return name == "g001" })
	if len(got.Groups) != 1 || !got.Whole || len(got.Groups[0].Topics) != 2 || len(got.Groups[0].Topics[1].Positions) != 2 {
		t.Errorf("all of one: %+v", got)
	}
}

// BenchmarkPass is a pass over groups that all move, of ten partitions each.
func BenchmarkPass(b *testing.B) {
	const groups, partitions = 10_000, 10
	w := &world{t: b}
	tr := NewTracker(Limits{128 << 20, 0}, w)
	facts := make([]Group, groups)
	for i := range facts {
		facts[i] = Group{Name: fmt.Sprintf("group-%d", i), Members: 3}
		for p := range int32(partitions) {
			facts[i].Positions = append(facts[i].Positions, Position{Topic: fmt.Sprintf("topic-%d", i/10), Partition: p, Owner: OwnerMember})
		}
	}
	now, end := time.Unix(1_700_000_000, 0), int64(1000)
	for b.Loop() {
		now, end = now.Add(10*time.Second), end+1000
		tr.Begin(now)
		for i := 0; i < groups; i += 10 {
			for p := range facts[i].Positions {
				f := &facts[i].Positions[p]
				tr.Log(Log{Topic: f.Topic, Partition: f.Partition, Bounds: Bounds{0, end}, LastStable: None, Added: end})
			}
		}
		for i := range facts {
			for p := range facts[i].Positions {
				facts[i].Positions[p].Committed = end - 500
			}
			tr.Group(facts[i])
		}
		tr.End()
	}
	b.ReportMetric(float64(tr.Bytes())/(1<<20), "MB")
}
