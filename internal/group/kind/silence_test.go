package kind

import (
	"testing"
	"time"
)

// What a member was silent before a load is taken off its session timeout, and written down
// in parts of it.
func TestSilenceBeforeALoadCounts(t *testing.T) {
	const session = 80 * time.Second
	b, now := &Base{ID: "g", Silences: map[string]time.Duration{"m": 30 * time.Second, "long": 2 * session}}, time.Unix(1_700_000_000, 0)
	x := &Step{Now: now}
	for id, want := range map[string]time.Duration{"m": 50 * time.Second, "long": ReturnTime, "new": session} {
		if got := b.SessionLeft(id, session); got != want {
			t.Errorf("%s has %s left", id, got)
		}
	}
	since := now.Add(-30 * time.Second).UnixMilli()
	if at := x.SessionTimer(b, "m", since, session, now.Add(session)); !at.Equal(now.Add(session / 8)) {
		t.Errorf("it is written down %s later", at.Sub(now))
	}
	if at := x.SessionTimer(b, "m", since, session, now.Add(time.Second)); !at.Equal(now.Add(time.Second)) {
		t.Errorf("the session ends %s later", at.Sub(now))
	}
	// The timer for it went off late, and the member is timed anew before.
	if at := x.SessionTimer(b, "m", since-20_000, session, now.Add(session)); !at.Equal(now) {
		t.Errorf("what was due before is written down %s later", at.Sub(now))
	}
	if at := x.SessionTimer(b, "m", 0, session, now.Add(session)); !at.Equal(now.Add(session)) {
		t.Error("the timer of a member that is not silent fires early")
	}
}
