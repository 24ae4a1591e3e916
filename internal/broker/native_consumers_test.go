package broker_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"muster/internal/redistest"
)

// shownConsumers returns the consumers that Redis shows of a group, on all
// partitions of orders.
func shownConsumers(t *testing.T, s *redistest.Server, group string) []string {
	t.Helper()
	var names []string
	for _, key := range []string{"muster:orders:0", "muster:orders:1", "muster:orders:2", "muster:orders:3"} {
		list, err := s.Nodes[0].Do("XINFO", "CONSUMERS", key, group)
		if err != nil {
			continue // The group is not there yet.
		}
		for _, consumer := range list.([]any) {
			name := consumer.([]any)[1].(string)
			names = append(names, key[len(key)-1:]+" "+name[:strings.IndexByte(name, '-')])
		}
	}
	slices.Sort(names)
	return names
}

func wantShown(t *testing.T, s *redistest.Server, group string, want func([]string) bool) {
	t.Helper()
	var last []string
	defer func() {
		if t.Failed() {
			t.Logf("Redis shows %q", last)
		}
	}()
	redistest.Eventually(t, "members to be shown as consumers", func() bool {
		last = shownConsumers(t, s, group)
		return want(last)
	})
}

// TestMembersAreShownInRedisWhileTheyHoldPartitions has members come, leave, and
// die.
func TestMembersAreShownInRedisWhileTheyHoldPartitions(t *testing.T) {
	t.Parallel()
	s := redistest.Single(t)
	props := map[string]string{"muster.store": "redis", "muster.redis.url": s.URL()}
	maps.Copy(props, quick)
	b := start(t, props)
	produce(t, client(t, b), "orders", 0, 100)
	session := kgo.SessionTimeout(3 * time.Second)
	ann := groupConsumer(t, b, "g", kgo.ClientID("ann"), session)
	take(t, ann, 100)
	all := func(name string) func([]string) bool {
		return func(got []string) bool {
			return slices.Equal(got, []string{"0 " + name, "1 " + name, "2 " + name, "3 " + name})
		}
	}
	wantShown(t, s, "g", all("ann"))
	bob := groupConsumer(t, b, "g", kgo.ClientID("bob"), session, kgo.InstanceID("static"))
	stop := polling(t, ann, bob)
	wantShown(t, s, "g", func(got []string) bool {
		text := strings.Join(got, " ")
		return len(got) == 4 && strings.Count(text, "ann") == 2 && strings.Count(text, "bob") == 2
	})
	stop()
	ann.Close()
	stop = polling(t, bob)
	wantShown(t, s, "g", all("bob"))
	stop()
	bob.Close() // A static member does not leave: its session runs out.
	wantShown(t, s, "g", func(got []string) bool { return len(got) == 0 })
}

// polling has clients poll until it is told to stop.
func polling(t *testing.T, clients ...*kgo.Client) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for _, c := range clients {
		running.Go(func() {
			for ctx.Err() == nil {
				c.PollFetches(ctx)
			}
		})
	}
	return func() {
		cancel()
		running.Wait()
	}
}
