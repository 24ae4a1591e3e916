package interop

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// matrixBroker is the address of the broker that interop/matrix has started, if
// it runs these tests. It reads what they print: a line "ok GROUP: NAME" for each
// check that passed.
var matrixBroker = os.Getenv("MUSTER_MATRIX_BROKER")

// TestMatrix has a row of the matrix in docs/clients.md for each client. Unlike
// the other tests it does not rely on offsets without gaps, so that it runs with
// every store as that is by default.
func TestMatrix(t *testing.T) {
	if matrixBroker == "" {
		t.Skip("these are for make interop")
	}
	tests := []struct {
		client    string
		producers []client
		assignors []string
		static    bool
	}{
		{"franz-go", []client{franz}, []string{"range", "roundrobin", "sticky", "cooperative-sticky"}, true},
		{"sarama", []client{saramaClient}, []string{"range", "roundrobin", "sticky", "cooperative-sticky"}, true},
		{"kafka-go", []client{kafkaGo, kafkaGoAcksAll}, []string{"range", "roundrobin"}, false},
		{"librdkafka", []client{librdkafka}, []string{"range", "roundrobin", "cooperative-sticky"}, true},
	}
	for _, tt := range tests {
		t.Run(tt.client, func(t *testing.T) {
			if consumerClients[tt.client] {
				defer startConsumerChecks(t, tt.client)()
			}
			for _, c := range tt.producers {
				for _, codec := range codecs {
					check(t, producing(c)+": "+codec, func(t *testing.T) { writeAndReadBack(t, c, codec) })
				}
			}
			for _, assignor := range tt.assignors {
				check(t, "group: "+assignor, func(t *testing.T) { shareAndLeave(t, tt.producers[0], tt.client, assignor) })
			}
			if tt.static {
				check(t, "group: static members restart without a rebalance", func(t *testing.T) { restartStatic(t, tt.client) })
			}
			if _, can := transactors[tt.client]; can {
				check(t, "transactions: commit and abort", func(t *testing.T) { commitAndAbort(t, tt.client) })
			}
			if tt.client == "franz-go" {
				check(t, "transactions: consume, transform, produce through a rebalance", copyInSessions)
			}
		})
	}
}

// startConsumerChecks has a client speak the consumer group protocol. All these checks
// run at the same time, and beside the others, since they mostly wait: for members
// that are to be missed, and for patterns to be looked at again. It returns what waits
// for them and says which passed, in the order in which they stand here.
func startConsumerChecks(t *testing.T, client string) (wait func()) {
	tests := []struct {
		name, topic string
		f           func(t *testing.T, addrs []string, name, client, assignor string)
	}{
		{"members join, leave, crash and stall", "flow", consumersComeAndGo},
		{"static members restart without a rebalance", "static", consumersRestart},
		{"topics by pattern that grow, vanish and come back", "topics", consumersFollowTopics},
	}
	var running sync.WaitGroup
	var names []string
	passed := map[string]*bool{}
	for _, assignor := range []string{"uniform", "range"} {
		for _, tt := range tests {
			name, ok := "consumer group: "+assignor+", "+tt.name, new(bool)
			names, passed[name] = append(names, name), ok
			running.Go(func() {
				*ok = t.Run(name, func(t *testing.T) {
					tt.f(t, []string{matrixBroker}, strings.Join([]string{"go-consumer", tt.topic, client, assignor}, "-"), client, assignor)
				})
			})
		}
	}
	return func() {
		running.Wait()
		for _, name := range names {
			if *passed[name] {
				fmt.Println("ok", name)
			}
		}
	}
}

// producing says how a client produces.
func producing(c client) string {
	switch {
	case c.idempotent:
		return "produce idempotently"
	case c.unordered:
		return "produce with acks=0"
	}
	return "produce with acks=all"
}

// check runs a subtest and says that it passed.
func check(t *testing.T, name string, f func(*testing.T)) {
	if t.Run(name, f) {
		fmt.Println("ok", name)
	}
}

// matrixTopic creates a topic for a test and returns its name.
func matrixTopic(t *testing.T, name string, partitions int32) string {
	t.Helper()
	topic := strings.NewReplacer(" ", "-", "=", "-").Replace("go-" + name)
	createTopic(t, matrixBroker, topic, partitions)
	return topic
}

// writeAndReadBack has a client write records and read them back.
func writeAndReadBack(t *testing.T, c client, codec string) {
	w := &written{addr: matrixBroker, by: c, codec: codec, recs: generate(codec, 1000), began: time.Now()}
	w.topic = matrixTopic(t, c.name+"-"+codec, clientPartitions)
	ctx, cancel := context.WithTimeout(t.Context(), clientTimeout)
	defer cancel()
	must(t, c.produce(ctx, w.addr, w.topic, codec, w.recs))
	w.readWith(t, c)
}

// shareAndLeave has two members share a topic, and one of them leave.
func shareAndLeave(t *testing.T, c client, name, assignor string) {
	topic := matrixTopic(t, "group-"+name+"-"+assignor, groupPartitions)
	g := newGroup(t, matrixBroker, topic, topic, name, assignor, calmSession)
	a, b := g.join("a"), g.join("b")
	g.settles(a, b)
	g.readsFrom(c, 500)
	a.leave()
	g.settles(b)
	g.readsFrom(c, 1000)
	b.leave()
	g.isEmpty()
}

// readsFrom has a client write until there are so many records, and waits until
// all are delivered and committed.
func (g *liveGroup) readsFrom(c client, n int) {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(g.t.Context(), clientTimeout)
	defer cancel()
	must(g.t, c.produce(ctx, g.spec.Addr, g.spec.Topic, "none", generate("none", 500)))
	waitFor(g.t, fmt.Sprintf("%d records to be delivered", n), func() error {
		if unique, _ := g.delivered.counts(); unique != n {
			return fmt.Errorf("%d are", unique)
		}
		return nil
	})
	ends, err := endOffsets(ctx, g.cl, g.spec.Topic)
	must(g.t, err)
	g.commits(ends)
}

// restartStatic restarts a static member that does not lead: franz-go's leader
// may well make another plan (see TestStaticMembersRestartWithoutARebalance).
func restartStatic(t *testing.T, name string) {
	topic := matrixTopic(t, "static-"+name, groupPartitions)
	g := newGroup(t, matrixBroker, topic, topic, name, "range", calmSession)
	members := []*memberProcess{g.joinStatic("a", "i-a"), g.joinStatic("b", "i-b")}
	before := g.settles(members...)
	first := g.current()
	i := slices.IndexFunc(members, func(m *memberProcess) bool { return !first.leads(m) })
	members[i].crash()
	members[i] = g.joinStatic(members[i].spec.ClientID, members[i].spec.InstanceID)
	if after := g.settles(members...); !maps.EqualFunc(before, after, slices.Equal) {
		t.Errorf("assignments were %v and are %v", before, after)
	}
	checkReplaced(t, first, g.current(), true)
}
