package lag

import (
	"testing"

	"muster/internal/watch/history"
)

// Groups that have never committed are many in some places. They take little, and have a
// place of their own from the first commit on, or if something is remembered of them.
func TestGroupsThatNeverCommittedShareWhatIsKnown(t *testing.T) {
	w := newWorld(t, 1<<20)
	l := w.log("t", 0, 0)
	w.produce(l, 5, w.now)
	for _, name := range []string{"idle", "busy", "old"} {
		w.group(name)
	}
	w.pass()
	checkBytes(t, w.tracker)
	if got, want := w.tracker.Bytes(), int64(3*groupSize+len("idlebusyold")+logSize+1); got != want {
		t.Errorf("groups without a commit take %d bytes with their log, want %d", got, want)
	}
	w.step()
	w.tracker.Begin(w.now)
	w.tracker.Log(l.Log)
	if got := w.tracker.Quiet(w.tracker.Keep("idle")); got != Resting {
		t.Errorf("a group without a commit is %v, want it resting", got)
	}
	w.pass()
	w.commit(w.group("busy"), l, 2)
	w.tracker.Restore(w.then(0, history.Group{Name: "old", Lag: 7}))
	w.step()
	w.pass()
	w.check()
	if got, _ := w.tracker.Of("busy"); got.Lag != 3 || got.Name != "busy" || got.Members != 1 {
		t.Errorf("after a commit: %+v", got)
	}
	if len(w.tracker.History("old", 0)) == 0 || len(w.tracker.History("idle", 0)) != 0 {
		t.Error("what is remembered of one group is said of others")
	}
	if got, ok := w.tracker.Of("idle"); !ok || got.Name != "idle" || got.Members != 1 || got.Lag != 0 || got.CatchUp != CaughtUp {
		t.Errorf("a group without a commit: %+v, %v", got, ok)
	}
}
