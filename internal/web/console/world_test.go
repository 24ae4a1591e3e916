package console_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"muster/internal/broker"
)

// Names that would do harm if they were taken for markup.
const (
	evilGroup = `<img src=x onerror=alert(1)>, & "more"/..%2f`
	group     = "billing"
	topic     = "orders"
)

// world is a broker with a group of two members that has lag, a group without members,
// and a topic that no one reads.
type world struct {
	t      *testing.T
	broker *broker.Broker
	kafka  *kgo.Client
	admin  *kadm.Client
	// members are those of the group.
	members []*kgo.Client

	committers []*kgo.Client // Of many groups.
}

// must ends the test if something fails that has to work.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newWorld starts a broker, with some settings besides those that a test needs.
func newWorld(t *testing.T, settings ...string) *world {
	properties := map[string]string{
		"listeners": "PLAINTEXT://127.0.0.1:0", "muster.store": "mem", "muster.http.listener": "127.0.0.1:0",
		"group.initial.rebalance.delay.ms": "0",
	}
	for i := 0; i < len(settings); i += 2 {
		properties[settings[i]] = settings[i+1]
	}
	b, err := broker.Open(t.Context(), broker.Config{Properties: properties})
	must(t, err)
	t.Cleanup(func() { _ = b.Close() })
	w := &world{t: t, broker: b}
	w.asks(w.client())
	return w
}

// ofThePage skips a test with -short, as the race detector wants it, in which the broker does
// only what it does in others, too.
func ofThePage(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("it is the page that is tested")
	}
}

// asks has a client ask what the tests want to know.
func (w *world) asks(c *kgo.Client) { w.kafka, w.admin = c, kadm.NewClient(c) }

func (w *world) client(opts ...kgo.Opt) *kgo.Client {
	w.t.Helper()
	c, err := kgo.NewClient(append(opts, kgo.SeedBrokers(w.broker.Addr()))...)
	must(w.t, err)
	w.t.Cleanup(c.Close)
	return c
}

// fill makes topics, records and groups.
func (w *world) fill() {
	w.t.Helper()
	ctx := w.t.Context()
	for name, partitions := range map[string]int32{topic: 6, "unread": 1} {
		if _, err := w.admin.CreateTopic(ctx, partitions, 1, nil, name); err != nil {
			w.t.Fatal(err)
		}
	}
	w.produce(300)
	first := w.member("first")
	w.read(ctx, first)
	second := w.member("second")
	w.read(ctx, second)
	offsets := kadm.Offsets{}
	offsets.Add(kadm.Offset{Topic: topic, At: 1, LeaderEpoch: -1})
	must(w.t, w.admin.CommitAllOffsets(ctx, evilGroup, offsets))
	w.produce(300)
	// Lag is remembered from its first change on: groups are looked at before and after one.
	w.broker.Status().Pass(ctx)
	w.produce(30)
	w.broker.Status().Pass(ctx)
}

func (w *world) produce(n int) {
	w.t.Helper()
	c := w.client(kgo.RecordPartitioner(kgo.RoundRobinPartitioner()))
	for i := range n {
		c.Produce(w.t.Context(), &kgo.Record{Topic: topic, Value: fmt.Appendf(nil, "record %d", i)}, nil)
	}
	must(w.t, c.Flush(w.t.Context()))
}

// member joins the group. It stays until the test ends.
func (w *world) member(name string) *kgo.Client {
	m := w.client(
		kgo.ClientID(name), kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	)
	w.members = append(w.members, m)
	return m
}

// read reads what a member gets first, and commits it.
func (w *world) read(ctx context.Context, c *kgo.Client) {
	w.t.Helper()
	fetches := c.PollRecords(ctx, 10)
	must(w.t, fetches.Err())
	if err := c.CommitRecords(ctx, fetches.Records()...); err != nil {
		w.t.Logf("commit: %v", err) // The other one joined meanwhile.
	}
}
