package conn

import (
	"context"
	"errors"
	"testing"

	"github.com/redis/rueidis"

	"muster/internal/redistest"
)

// A connection to another run is given up until everybody has left who entered before.
func TestAnotherRunWaitsUntilEverybodyHasLeft(t *testing.T) {
	r := &Runs{}
	want := func(what string, err error, refused bool, generation uint64) {
		t.Helper()
		if errors.Is(err, errOtherRun) != refused || r.Generation() != generation {
			t.Errorf("%s: %v, generation %d", what, err, r.Generation())
		}
	}
	want("the first", r.connected("", "a"), false, 0)
	old := r.Enter()
	want("the same", r.connected("", "a"), false, 0)
	want("another", r.connected("", "b"), true, 1)
	want("another, again", r.connected("", "b"), true, 1)
	now := r.Enter()
	if old != 0 || now != 1 {
		t.Errorf("entered in %d and %d", old, now)
	}
	want("a third, while somebody of the first is inside", r.connected("", "c"), true, 1)
	r.Leave(old)
	want("when everybody has left", r.connected("", "b"), false, 1)
	want("a third, while somebody of the second is inside", r.connected("", "c"), true, 2)
	r.Leave(now)
	want("when he has left", r.connected("", "c"), false, 2)
	want("one that does not say", r.connected("", ""), false, 3)
	want("one that does not say, again", r.connected("", ""), false, 4)
	want("another server", r.connected("1.2.3.4:5", "x"), false, 5)
	var none *Runs
	none.Leave(none.Enter())
}

// Whatever the server wants to know first, and however it is reached, its run is known, and
// a restart makes another generation, before a command gets there.
func TestARestartIsAnotherGeneration(t *testing.T) {
	for name, url := range map[string]func(s *redistest.Server) string{
		"plain":    func(s *redistest.Server) string { return s.URL() },
		"password": func(s *redistest.Server) string { return "redis://:hunter2@" + s.Nodes[0].Addr() },
		"user":     func(s *redistest.Server) string { return "redis://ann:hunter2@" + s.Nodes[0].Addr() },
	} {
		t.Run(name, func(t *testing.T) {
			var config []string
			switch name {
			case "password":
				config = []string{"requirepass hunter2"}
			case "user":
				config = []string{"user default off", "user ann on >hunter2 ~* &* +@all"}
			}
			s := redistest.Single(t, config...)
			runs := &Runs{}
			client, err := Connect(context.Background(), url(s), Options{Runs: runs})
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			if err := ping(client); err != nil || runs.Generation() != 0 {
				t.Fatalf("generation %d, %v", runs.Generation(), err)
			}
			if err := client.Dedicated(func(c rueidis.DedicatedClient) error { // Another connection.
				return c.Do(context.Background(), c.B().Ping().Build()).Error()
			}); err != nil || runs.Generation() != 0 {
				t.Fatalf("generation %d, %v", runs.Generation(), err)
			}
			inside := runs.Enter()
			s.Nodes[0].Kill()
			s.Nodes[0].Start(t)
			redistest.Eventually(t, "the restart to be noticed", func() bool { _ = ping(client); return runs.Generation() == 1 })
			if err := ping(client); err == nil {
				t.Error("a command gets there while somebody is inside")
			}
			runs.Leave(inside)
			redistest.Eventually(t, "the client to connect again", func() bool { return ping(client) == nil })
			if g := runs.Generation(); g != 1 {
				t.Errorf("generation %d", g)
			}
		})
	}
}
