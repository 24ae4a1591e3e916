package conn

import (
	"context"
	"slices"
	"testing"
	"time"

	"muster/internal/redistest"
)

// change is what Watch told.
type change struct {
	up      bool
	err     error
	downFor time.Duration
}

// watching runs Watch until the test ends.
func watching(t *testing.T, url string) <-chan change {
	t.Helper()
	client := connect(t, url)
	ctx, cancel := context.WithCancel(context.Background())
	changes, done := make(chan change, 100), make(chan struct{})
	go func() {
		defer close(done)
		Watch(ctx, client, 20*time.Millisecond, func(up bool, err error, downFor time.Duration) {
			changes <- change{up, err, downFor}
		})
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		if len(changes) != 0 {
			t.Errorf("Watch told %d things more than happened", len(changes))
		}
	})
	return changes
}

func next(t *testing.T, changes <-chan change) change {
	t.Helper()
	select {
	case c := <-changes:
		return c
	case <-time.After(30 * time.Second):
		t.Fatal("Watch tells nothing")
		return change{}
	}
}

// wantDownAndUp breaks Redis and mends it, and demands to be told of both once. It was
// there at some time after before: the look that finds it gone may have begun when it
// was there still. It returns a time at which it was gone.
func wantDownAndUp(t *testing.T, changes <-chan change, before time.Time, breaks, mends func()) time.Time {
	t.Helper()
	breaks()
	if c := next(t, changes); c.up || c.err == nil || c.downFor != 0 {
		t.Errorf("when Redis went away, Watch told %+v", c)
	}
	gone := time.Now()
	mends()
	c := next(t, changes)
	if !c.up || c.err != nil || c.downFor <= 0 || c.downFor > time.Since(before) {
		t.Errorf("when Redis came back, Watch told %+v", c)
	}
	return gone
}

func TestWatchTellsOnceThatRedisWentAndCame(t *testing.T) {
	s := redistest.Single(t)
	before, changes := time.Now(), watching(t, s.URL())
	for range 2 {
		before = wantDownAndUp(t, changes, before, s.Nodes[0].Kill, func() { s.Nodes[0].Start(t) })
	}
}

func TestWatchNoticesThatRedisHangs(t *testing.T) {
	s := redistest.Single(t)
	before, changes := time.Now(), watching(t, s.URL())
	wantDownAndUp(t, changes, before, s.Nodes[0].Pause, s.Nodes[0].Resume)
}

func TestWatchTakesAClosedConnectionForNothing(t *testing.T) {
	s := redistest.Single(t)
	watching(t, s.URL())
	for range 5 {
		if _, err := s.Nodes[0].Do("CLIENT", "KILL", "TYPE", "normal"); err != nil {
			t.Fatal(err)
		}
		pings := s.Nodes[0].Info("commandstats", "cmdstat_ping")
		redistest.Eventually(t, "a probe", func() bool { return s.Nodes[0].Info("commandstats", "cmdstat_ping") != pings })
	}
}

func TestWatchTellsOfAClusterWithoutAPrimary(t *testing.T) {
	s := redistest.Cluster(t)
	before, changes := time.Now(), watching(t, s.URL())
	primary := s.Primary(t, "any")
	for _, n := range s.Nodes {
		if !n.IsPrimary() && !slices.Contains(s.Replicas(primary), n) {
			n.Kill() // A replica is not missed.
			break
		}
	}
	wantDownAndUp(t, changes, before, primary.Kill, func() {})
}

func TestWatchTellsOfAFailoverUnderSentinel(t *testing.T) {
	s := redistest.Sentinel(t)
	before, changes := time.Now(), watching(t, s.URL())
	wantDownAndUp(t, changes, before, s.Primary(t, "").Kill, func() {})
}
