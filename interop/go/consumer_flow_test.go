package interop

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"muster/internal/assert"
)

// consumerCases are the clients and assignors of the consumer group protocol.
var consumerCases = []struct{ client, assignor string }{
	{"franz-go", "uniform"},
	{"franz-go", "range"},
	{"librdkafka", "uniform"},
	{"librdkafka", "range"},
}

// eachConsumerCase runs a test with each client and assignor, all at the same time:
// they mostly wait.
func eachConsumerCase(t *testing.T, name string, f func(t *testing.T, addrs []string, name, client, assignor string)) {
	t.Helper()
	addrs := []string{serve(t, t.TempDir(), slices.Concat(groupSettings, consumerSettings)...).addr()}
	var running sync.WaitGroup
	for _, tt := range consumerCases {
		running.Go(func() {
			t.Run(tt.client+"/"+tt.assignor, func(t *testing.T) {
				f(t, addrs, strings.Join([]string{name, tt.client, tt.assignor}, "-"), tt.client, tt.assignor)
			})
		})
	}
	running.Wait()
}

// TestConsumerGroupsDeliverEverythingWhileMembersComeAndGo has consumer groups
// read a topic that is being written to while members join, leave, crash and stall.
func TestConsumerGroupsDeliverEverythingWhileMembersComeAndGo(t *testing.T) {
	eachConsumerCase(t, "consumer-flow", consumersComeAndGo)
}

func consumersComeAndGo(t *testing.T, addrs []string, name, client, assignor string) {
	began := time.Now()
	g := newConsumerGroup(t, addrs, name, client, assignor, groupPartitions)
	s := g.stream()
	a, b := g.join("a"), g.join("b") // at the same time
	g.settles(a, b)

	c := g.join("c")
	g.settles(a, b, c)

	b.leave()
	g.settles(a, c)

	// One joins while another leaves.
	d := g.join("d")
	c.leave()
	g.settles(a, d)

	// One crashes, another joins before that is noticed.
	g.crash(d)
	e := g.join("e")
	g.settles(a, e)

	// One stalls until it is missed.
	g.stall(a)
	g.settles(e)
	a.resume()
	g.settles(a, e)

	s.finish()
	a.leave()
	e.leave()
	g.isEmpty()
	g.hasRead()
	records, tenures := g.ledger.counts()
	t.Logf("%d records, partitions came to a member %d times, in %s", records, tenures, time.Since(began).Round(time.Millisecond))
}

// TestStaticConsumersRestartWithoutARebalance restarts static members of consumer
// groups: they get back what they had, and no one else notices.
func TestStaticConsumersRestartWithoutARebalance(t *testing.T) {
	eachConsumerCase(t, "consumer-static", consumersRestart)
}

func consumersRestart(t *testing.T, addrs []string, name, client, assignor string) {
	g := newConsumerGroup(t, addrs, name, client, assignor, groupPartitions)
	g.isCalm(true)
	members := []*memberProcess{g.joinStatic("a", "i-a"), g.joinStatic("b", "i-b"), g.joinStatic("c", "i-c")}
	before := g.settles(members...)
	first, err := g.view()
	must(t, err)
	g.reads()
	for i, m := range members {
		others := slices.Delete(slices.Clone(members), i, i+1)
		seen := historyLengths(others)
		m.leave()
		members[i] = g.joinStatic(m.spec.ClientID, m.spec.InstanceID)
		if after := g.settles(members...); !maps.EqualFunc(before, after, slices.Equal) {
			t.Fatalf("member %s restarted: assignments were %v and are %v", m.spec.ClientID, before, after)
		}
		g.reads()
		assert.EqualSlices(t, seen, historyLengths(others), "member %s restarted, and others noticed", m.spec.ClientID)
	}
	if v, err := g.view(); err != nil || v.epoch != first.epoch {
		t.Errorf("the group's epoch was %d and is %d, error %v", first.epoch, v.epoch, err)
	}
	// One that does not come back is missed.
	g.isCalm(false)
	<-time.After(time.Second) // A heartbeat begins a session.
	g.crash(members[0])
	g.settles(members[1:]...)
	g.reads()
}

// TestConsumerGroupsFollowTopics has consumer groups with a pattern read topics that
// are created, grow, vanish, and come back.
func TestConsumerGroupsFollowTopics(t *testing.T) {
	eachConsumerCase(t, "consumer-topics", consumersFollowTopics)
}

func consumersFollowTopics(t *testing.T, addrs []string, name, client, assignor string) {
	first, second := name+".1", name+".2"
	g := newConsumerGroup(t, addrs, name, client, assignor, 1)
	delete(g.topics, name) // It does not match.
	g.create(first, 4)
	g.spec.Pattern = "^" + name + `\..*`
	a, b := g.join("a"), g.join("b")
	g.settles(a, b)
	g.reads()

	g.create(second, 3)
	g.settles(a, b)
	g.reads()

	if _, err := g.admin.UpdatePartitions(t.Context(), 6, first); err != nil {
		t.Fatal(err)
	}
	g.topics[first] = 6
	g.settles(a, b)
	g.reads()

	if _, err := g.admin.DeleteTopic(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	delete(g.topics, second)
	g.settles(a, b)
	g.ledger.forget(second)
	g.reads()

	g.create(second, 2)
	g.settles(a, b)
	g.reads()
	a.leave()
	g.settles(b)
	g.reads()
	b.leave()
	g.isEmpty()
	g.hasRead()
}
