package lag

import (
	"fmt"
	"testing"
	"time"
)

// dies lets members die in partitions, and makes a pass.
func (w *world) dies(g *worldGroup, who string, in ...*worldLog) GroupLag {
	w.t.Helper()
	w.step()
	for _, l := range in {
		g.deaths = append(g.deaths, Death{Who(who), l.Topic, l.Partition, g.committed[key{l.Topic, l.Partition}]})
	}
	w.pass()
	checkBytes(w.t, w.tracker)
	return w.of("billing")
}

func TestThreeDeathsAtTheSameOffsetMakeASuspect(t *testing.T) {
	w, l, g := one(t)
	w.produce(l, 10, w.now)
	w.commit(g, l, 4)
	for i, who := range []string{"a", "a", "b", "a"} {
		if got := w.dies(g, who, l); got.Poison != 0 {
			t.Errorf("after %d: %+v", i, got)
		}
	}
	got := w.dies(g, "c", l)
	if p := w.tracker.Partitions("billing")[0]; got.Poison != 1 || got.Dying || p.Deaths != 3 {
		t.Errorf("%+v, %+v", got, p)
	}
	if s := w.tracker.Suspected(); fmt.Sprint(s) != "[{billing [{orders 0 4 10 3}] 1}]" {
		t.Errorf("told: %v", s)
	}
	// It stays one, on the way without facts too, and is told once.
	w.now = w.now.Add(2 * time.Hour)
	if got := w.dies(g, "d", l); got.Poison != 1 || w.tracker.Suspected() != nil {
		t.Errorf("later: %+v", got)
	}
	w.step()
	w.tracker.Begin(w.now)
	w.tracker.Log(l.Log)
	w.tracker.Again(w.tracker.Keep("billing"), Moving)
	w.tracker.End()
	if got := w.of("billing"); got.Poison != 1 {
		t.Errorf("again: %+v", got)
	}
	w.commit(g, l, 1)
	if got := w.dies(g, "e"); got.Poison != 0 || w.tracker.groups["billing"].deaths != nil {
		t.Errorf("after a commit: %+v", got)
	}
}

func TestNothingIsKeptOfWhatIsWell(t *testing.T) {
	for name, change := range map[string]func(*world, *worldLog, *worldGroup, *Death){
		"without lag":      func(w *world, l *worldLog, g *worldGroup, d *Death) { w.commit(g, l, 10); d.Committed = 10 },
		"it got on":        func(_ *world, _ *worldLog, _ *worldGroup, d *Death) { d.Committed-- },
		"another topic":    func(_ *world, _ *worldLog, _ *worldGroup, d *Death) { d.Topic = "clicks" },
		"held back":        func(_ *world, l *worldLog, _ *worldGroup, _ *Death) { l.LastStable = 4 },
		"no room":          func(w *world, _ *worldLog, _ *worldGroup, _ *Death) { w.restart(1) },
		"records are gone": func(_ *world, l *worldLog, _ *worldGroup, _ *Death) { l.trim(10) },
	} {
		w, l, g := one(t)
		w.produce(l, 10, w.now)
		w.commit(g, l, 4)
		d := Death{Who("a"), "orders", 0, 4}
		change(w, l, g, &d)
		g.deaths = []Death{d}
		w.pass()
		if w.tracker.groups["billing"].deaths != nil {
			t.Errorf("%s: something is kept", name)
		}
		checkBytes(t, w.tracker)
	}
}

func TestDeathsFarApartAreNoSuspect(t *testing.T) {
	w, l, g := one(t)
	w.produce(l, 10, w.now)
	w.commit(g, l, 4)
	for _, who := range []string{"a", "b", "c", "d"} { // Never three within an hour.
		if got := w.dies(g, who, l); got.Poison != 0 {
			t.Errorf("%s: %+v", who, got)
		}
		w.now = w.now.Add(40 * time.Minute)
	}
	w.now = w.now.Add(time.Hour)
	if w.dies(g, ""); w.tracker.groups["billing"].deaths != nil {
		t.Error("they are kept")
	}
}

func TestMembersThatDieEverywhereAreNotKilledByARecord(t *testing.T) {
	w, l, g := one(t)
	other, third := w.log("orders", 1, 0), w.log("orders", 2, 0)
	for _, l := range []*worldLog{l, other, third} {
		w.produce(l, 10, w.now)
		w.commit(g, l, 4)
	}
	w.commit(g, third, 6) // It has read all of it.
	w.pass()
	var got GroupLag
	for _, who := range []string{"a", "b", "c"} {
		got = w.dies(g, who, l, other, third)
	}
	if got.Poison != 0 || !got.Dying || w.tracker.Suspected() != nil {
		t.Errorf("%+v", got)
	}
	w.produce(third, 1, w.now)
	w.commit(g, third, 1) // The group gets on elsewhere.
	if got := w.dies(g, ""); got.Poison != 2 || got.Dying {
		t.Errorf("%+v", got)
	}
	if s := w.tracker.Suspected(); len(s) != 1 || s[0].N != 2 {
		t.Errorf("%+v", s)
	}
}

// Whatever ends the past of a partition ends the count of who died there.
func TestDeathsEndWithWhatTheyWereAt(t *testing.T) {
	for name, change := range map[string]func(*world, *worldLog, *worldGroup){
		"its records are gone": func(w *world, l *worldLog, _ *worldGroup) {
			l.trim(10)
			w.pass()
			w.produce(l, 3, w.now)
		},
		"it got on while nobody led the partition": func(w *world, l *worldLog, g *worldGroup) {
			l.Offline = true
			w.commit(g, l, 1)
			w.pass()
			l.Offline = false
		},
		"the topic is gone for a while": func(w *world, l *worldLog, _ *worldGroup) {
			delete(w.logs, key{l.Topic, l.Partition})
			w.pass()
			w.logs[key{l.Topic, l.Partition}] = l
		},
		"the group is deleted": func(w *world, _ *worldLog, _ *worldGroup) { w.tracker.Forget("billing") },
	} {
		w, l, g := one(t)
		w.produce(l, 10, w.now)
		w.commit(g, l, 4)
		w.pass()
		w.dies(g, "a", l)
		w.dies(g, "b", l)
		w.step()
		change(w, l, g)
		if got := w.dies(g, "c", l); got.Poison != 0 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
