package native

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"

	"muster/internal/redistest"
	"muster/internal/store"
)

func tp(partition int32) store.TopicPartition {
	return store.TopicPartition{Topic: "t", Partition: partition}
}

func assigned(group, client, host string, partitions ...int32) Assigned {
	a := Assigned{Group: group, ClientID: client, Host: host}
	for _, p := range partitions {
		a.Partitions = append(a.Partitions, AssignedPartition{"t", p})
	}
	return a
}

// quiet returns assignments that hear only what a test tells them.
func quiet() *Assignments { return NewAssignments(nil, "p", slog.New(slog.DiscardHandler)) }

func tell(a *Assignments, list ...Assigned) {
	for _, assigned := range list {
		a.take(assigned)
	}
}

func wantExpected(t *testing.T, a *Assignments, client, host string, p int32, want ...string) {
	t.Helper()
	got := a.Expect(client, host, tp(p))
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("a fetch of partition %d by %s at %s is expected of %q, not %q", p, client, host, got, want)
	}
}

func TestFirstFetchTellsItsGroup(t *testing.T) {
	a := quiet()
	wantExpected(t, a, "c", "h", 1)
	tell(a, assigned("g", "c", "h", 1, 2), assigned("other", "c", "h", 1))
	wantExpected(t, a, "c", "elsewhere", 1)
	wantExpected(t, a, "other", "h", 1)
	wantExpected(t, a, "c", "h", 3)
	wantExpected(t, a, "c", "h", 1, "g", "other")
	wantExpected(t, a, "c", "h", 1)
	wantExpected(t, a, "c", "h", 2, "g")
	if len(a.members) != 0 || a.order.Len() != 0 {
		t.Error("what was fetched is still remembered")
	}
}

func TestPartitionIsExpectedOfItsNewestMember(t *testing.T) {
	a := quiet()
	tell(a, assigned("g", "old", "h", 1, 2), assigned("other", "old", "h", 1), assigned("g", "new", "h", 1))
	wantExpected(t, a, "old", "h", 1, "other")
	wantExpected(t, a, "new", "h", 1, "g")
	wantExpected(t, a, "old", "h", 2, "g")
}

func TestOldestAssignmentsAreForgottenFirst(t *testing.T) {
	a := quiet()
	a.limit = 10
	for i := range 25 {
		tell(a, assigned(fmt.Sprint(i), "c", "h", int32(i)))
	}
	for i := range 25 {
		if i < 15 {
			wantExpected(t, a, "c", "h", int32(i))
		} else {
			wantExpected(t, a, "c", "h", int32(i), fmt.Sprint(i))
		}
	}
}

func TestEveryBrokerHearsAssignments(t *testing.T) {
	redistest.Each(t, func(t *testing.T, url string) {
		ctx, cancel := context.WithCancel(context.Background())
		prefix := redistest.Prefix(t)
		var wg sync.WaitGroup
		var brokers []*Assignments
		for range 3 {
			a := NewAssignments(connect(t, url), prefix, slog.New(slog.DiscardHandler))
			brokers = append(brokers, a)
			wg.Go(func() { a.Listen(ctx) })
		}
		defer wg.Wait()
		defer cancel()
		for _, a := range brokers {
			redistest.Eventually(t, "an assignment to be heard", func() bool {
				publish := a.client.B().Publish().Channel(a.channel).Message("not JSON").Build()
				if err := a.client.Do(ctx, publish).Error(); err != nil {
					t.Fatal(err)
				}
				if err := brokers[0].Announce(ctx, assigned("g", "c", "h", 7)); err != nil {
					t.Fatal(err)
				}
				return slices.Equal(a.Expect("c", "h", tp(7)), []string{"g"})
			})
		}
	})
}

func TestListenerHearsAgainAfterRedisWasAway(t *testing.T) {
	s := redistest.Single(t)
	ctx, cancel := context.WithCancel(context.Background())
	a := NewAssignments(connect(t, s.URL()), "p", slog.New(slog.DiscardHandler))
	done := make(chan struct{})
	go func() {
		a.Listen(ctx)
		close(done)
	}()
	for range 2 {
		redistest.Eventually(t, "an assignment to be heard", func() bool {
			return a.Announce(ctx, assigned("g", "c", "h", 1)) == nil && a.Expect("c", "h", tp(1)) != nil
		})
		s.Nodes[0].Kill()
		s.Nodes[0].Start(t)
	}
	cancel()
	<-done
}

func TestExpectIsSafeWhileAssignmentsArrive(t *testing.T) {
	a := quiet()
	a.limit = 50
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 2000 {
				tell(a, assigned(fmt.Sprint(w), "c", fmt.Sprint(i%3), int32(i%40)))
				a.Expect("c", fmt.Sprint(i%2), tp(int32(i%40)))
			}
		})
	}
	wg.Wait()
	count := 0
	a.expected.Range(func(_, groups any) bool {
		count += len(groups.([]string))
		return true
	})
	if count != len(a.members) || count != a.order.Len() {
		t.Errorf("%d are expected, of %d members, in an order of %d", count, len(a.members), a.order.Len())
	}
}

func BenchmarkExpectNothing(b *testing.B) {
	a := quiet()
	tell(a, assigned("g", "c", "h", 1, 2, 3))
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			a.Expect("client", "10.0.0.1", tp(1))
		}
	})
}
