package redistest

import (
	"context"
	"strconv"
	"testing"
	"time"
)

func TestMain(m *testing.M) { Main(m) }

func TestEveryKindServesClients(t *testing.T) {
	for _, kind := range Kinds {
		t.Run(string(kind), func(t *testing.T) {
			client := Shared(t, kind).Client(t)
			prefix := Prefix(t)
			for i := range 50 { // Enough to reach every primary of a cluster.
				key := prefix + ":" + strconv.Itoa(i)
				if err := client.Do(context.Background(), client.B().Set().Key(key).Value("v").Build()).Error(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func TestSharedServersAreStartedOnce(t *testing.T) {
	first := Shared(t, KindSingle)
	if second := Shared(t, KindSingle); second != first {
		t.Error("a second server was started")
	}
	prefix := Prefix(t)
	if other := Prefix(t); other == prefix {
		t.Error("two tests would use the same keys")
	}
}

func TestPrimaryIsReplacedAfterKill(t *testing.T) {
	for kind, start := range map[Kind]func(testing.TB, ...string) *Server{KindCluster: Cluster, KindSentinel: Sentinel} {
		t.Run(string(kind), func(t *testing.T) {
			s := start(t)
			client := s.Client(t)
			old := s.Primary(t, "key")
			old.Kill()
			next := s.Primary(t, "key")
			if next == old {
				t.Fatal("the primary is still the one that was killed")
			}
			Eventually(t, "the client to find the new primary", func() bool {
				return client.Do(context.Background(), client.B().Set().Key("key").Value("v").Build()).Error() == nil
			})
			if kind == KindSentinel {
				return // It takes ten seconds to look at the old primary again.
			}
			old.Start(t)
			Eventually(t, "the old primary to follow the new one", func() bool {
				return len(s.Replicas(next)) >= 1 && !old.IsPrimary()
			})
		})
	}
}

func TestKilledServerKeepsItsData(t *testing.T) {
	s := Single(t)
	n := s.Nodes[0]
	if _, err := n.Do("SET", "key", "value"); err != nil {
		t.Fatal(err)
	}
	n.Kill()
	if _, err := n.Do("GET", "key"); err == nil {
		t.Fatal("a killed server answers")
	}
	n.Start(t)
	if v, err := n.Text("GET", "key"); err != nil || v != "value" {
		t.Errorf("GET after a kill: %q, %v", v, err)
	}
	n.Stop()
	n.Start(t)
	if v, err := n.Text("GET", "key"); err != nil || v != "value" {
		t.Errorf("GET after a stop: %q, %v", v, err)
	}
}

func TestPausedServerAnswersWhenResumed(t *testing.T) {
	s := Single(t, "maxmemory-policy allkeys-lru")
	client := s.Client(t)
	ping := func(limit time.Duration) error {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		return client.Do(ctx, client.B().Ping().Build()).Error()
	}
	s.Nodes[0].Pause()
	if err := ping(100 * time.Millisecond); err == nil {
		t.Error("a paused server answered")
	}
	s.Nodes[0].Resume()
	if err := ping(10 * time.Second); err != nil {
		t.Error(err)
	}
}

// TestPortsAreGivenOutOnce takes more than a block has.
func TestPortsAreGivenOutOnce(t *testing.T) {
	given := make(map[int]bool)
	for range 3 * blockSize {
		port := FreePort(t)
		if given[port] || port <= firstPort || port >= lastPort {
			t.Fatalf("port %d is given out, %v", port, given)
		}
		given[port] = true
		block := listen(port - port%blockSize)
		if block != nil {
			_ = block.Close()
			t.Fatalf("another process may take the block of port %d", port)
		}
	}
}
