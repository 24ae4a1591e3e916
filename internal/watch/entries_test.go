package watch

import (
	"testing"

	"muster/internal/journal"
	"muster/internal/watch/lag"
)

func TestWhoDiesAtTheSameOffsetIsToldOf(t *testing.T) {
	w := newWorld(t)
	w.topic("orders", self, self)
	w.logs[orders0], w.logs[orders1] = Log{0, 100, 100, 1, 0}, Log{0, 10, 10, 1, 0}
	w.groups = []Group{billing(map[Part]int64{orders0: 40, orders1: 10}, orders0, orders1)}
	var told []journal.Entry
	w.w.opts.Suspected = func(e journal.Entry) { told = append(told, e) }
	for _, who := range []string{"a", "b", "c", "d"} {
		w.passes(1, func() { w.w.died("billing", []lag.Death{{Who: lag.Who(who), Topic: "orders", Committed: 40}}) })
	}
	if s, _ := w.w.Snapshot().Groups.Get("billing"); s.Poison != 1 || s.Findings[0] != "poison-suspect" {
		t.Errorf("%+v", s)
	}
	if len(told) != 1 || told[0].Group != "billing" || told[0].State != "Stable" || told[0].After != 1 || told[0].Suspects[0].Committed != 40 {
		t.Errorf("%+v", told)
	}
}

func TestDeathsBetweenPassesAreBounded(t *testing.T) {
	w := newWorld(t).w
	for range 30 {
		w.died("billing", make([]lag.Death, 1000))
	}
	if len(w.news.died["billing"]) != maxDeaths {
		t.Errorf("%d are remembered", len(w.news.died["billing"]))
	}
	if w.deleted("billing"); w.news.dead != 0 || len(w.news.died) != 0 {
		t.Errorf("%d of a group that is gone", w.news.dead)
	}
	w.died("billing", make([]lag.Death, 1000))
	if w.news.take(); w.news.dead != 0 {
		t.Errorf("%d that a pass has seen", w.news.dead)
	}
}

// The journal and the watch are told the same; what only the watch needs is not kept.
func TestWhatHappenedToGroupsIsTakenIn(t *testing.T) {
	w := newWorld(t)
	w.topic("orders", self, self)
	w.logs[orders0], w.logs[orders1] = Log{0, 100, 100, 1, 0}, Log{0, 10, 10, 1, 0}
	w.groups = []Group{billing(map[Part]int64{orders0: 40, orders1: 10}, orders0, orders1)}
	for i, who := range []string{"a", "b", "c"} {
		entries := []journal.Entry{
			{Group: "other", Kind: journal.KindStarted, Triggers: []journal.Trigger{{Kind: journal.TriggerJoined}}},
			{Group: "billing", Kind: journal.KindSettled, Time: w.now, Triggers: []journal.Trigger{
				{Kind: journal.TriggerExpired, Who: journal.Who{Member: who}, At: []journal.Position{{Topic: "orders", Committed: 40}}}, {Kind: journal.TriggerJoined},
			}},
		}
		w.passes(1, func() { w.w.Observe(entries) })
		if entries[1].Triggers[0].At != nil {
			t.Errorf("where %s was stays in the entry", who)
		}
		s, _ := w.w.Snapshot().Groups.Get("billing")
		if want := i / 2; s.Cause != "expired" || s.Rebalanced == nil || s.Poison != want {
			t.Errorf("after %s: cause %q, at %v, %d suspects", who, s.Cause, s.Rebalanced, s.Poison)
		}
	}
	w.passes(1, func() { w.w.Observe([]journal.Entry{{Group: "billing", Kind: journal.KindDeleted}}) })
	if s, _ := w.w.Snapshot().Groups.Get("billing"); s.Cause != "" || s.Poison != 0 {
		t.Errorf("another group of that name has the past of one that was deleted: %+v", s)
	}
}
