package lag

import (
	"testing"
	"time"
)

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
