package broker_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
	"muster/internal/broker"
	"muster/internal/metadata"
)

// quotaClock stands still but for the times for which someone waits, which pass at once,
// or not at all.
type quotaClock struct {
	mu     sync.Mutex
	now    time.Time
	waited []time.Duration
	never  bool
}

func newQuotaClock() *quotaClock {
	return &quotaClock{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
}

func (c *quotaClock) read() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *quotaClock) after(d time.Duration) <-chan time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waited = append(c.waited, d)
	if c.never {
		return nil
	}
	c.now = c.now.Add(d)
	over := make(chan time.Time, 1)
	over <- c.now
	return over
}

// waits returns for how long someone had to wait, each time.
func (c *quotaClock) waits() []time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]time.Duration(nil), c.waited...)
}

func (c *quotaClock) set(b *broker.Config) { b.Clock(c.read, c.after) }

// meter counts what a client sends and receives, and how long it is told to wait.
type meter struct {
	mu    sync.Mutex
	told  time.Duration
	bytes map[int16]int // in frames, by key
}

func newMeter() *meter { return &meter{bytes: map[int16]int{}} }

// OnBrokerThrottle implements kgo.HookBrokerThrottle.
func (m *meter) OnBrokerThrottle(_ kgo.BrokerMetadata, d time.Duration, _ bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.told += d
}

// OnBrokerE2E implements kgo.HookBrokerE2E.
func (m *meter) OnBrokerE2E(_ kgo.BrokerMetadata, key int16, e kgo.BrokerE2E) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case e.Err() != nil:
	case key == kmsg.Fetch.Int16():
		m.bytes[key] += e.BytesRead - 4
	default:
		m.bytes[key] += e.BytesWritten - 4
	}
}

func (m *meter) read(key kmsg.Key) (bytes int, told time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.bytes[key.Int16()], m.told
}

// limit sets a quota of a client id.
func limit(t *testing.T, b *broker.Broker, client, key string, rate float64) {
	t.Helper()
	change := metadata.QuotaChange{Entity: metadata.QuotaEntity{ClientID: metadata.Some(client)}, Set: map[string]float64{key: rate}}
	must(t, b.AlterQuotas(t.Context(), change))
}

// produceBytes produces records of a kilobyte, in batches of 64.
func produceBytes(t *testing.T, c *kgo.Client, topic string, kilobytes int) {
	t.Helper()
	for ; kilobytes > 0; kilobytes -= 64 {
		var recs []*kgo.Record
		for range min(kilobytes, 64) {
			recs = append(recs, &kgo.Record{Topic: topic, Value: make([]byte, 1000)})
		}
		must(t, c.ProduceSync(t.Context(), recs...).FirstErr())
	}
}

// A producer is told to wait for exactly as long as what it sent takes at its rate, but for
// the second's worth that a new client has, and the broker does not read from it meanwhile: no other time passes here.
func TestAProducerIsHeldToItsQuota(t *testing.T) {
	const rate = 1e6
	clock, m := newQuotaClock(), newMeter()
	began := clock.read()
	b := start(t, nil, clock.set)
	limit(t, b, "app", metadata.ProducerByteRate, rate)
	produceBytes(t, client(t, b, kgo.ClientID("app"), kgo.WithHooks(m), kgo.ProducerBatchCompression(kgo.NoCompression())), "orders", 2000)
	sent, told := m.read(kmsg.Produce)
	if owed := rate*(1+told.Seconds()) - float64(sent); sent < 2e6 || owed < 0 || owed > rate/1000 {
		t.Errorf("%d bytes, and told to wait %s", sent, told)
	}
	eventually(t, "its connection is not read for as long", func(context.Context) error {
		if passed := clock.read().Sub(began); passed != told {
			return fmt.Errorf("told to wait %s, but not read for %s", told, passed)
		}
		return nil
	})
}

func TestAConsumerIsHeldToItsQuota(t *testing.T) {
	const rate = 1e6
	clock, m := newQuotaClock(), newMeter()
	b := start(t, nil, clock.set)
	produceBytes(t, client(t, b, kgo.ProducerBatchCompression(kgo.NoCompression())), "orders", 4000)
	limit(t, b, "app", metadata.ConsumerByteRate, rate)
	began := clock.read()
	c := client(t, b, kgo.ClientID("app"), kgo.WithHooks(m), kgo.ConsumeTopics("orders"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	for n := 0; n < 4000; {
		fs := c.PollFetches(t.Context())
		must(t, fs.Err())
		n += fs.NumRecords()
	}
	got, told := m.read(kmsg.Fetch)
	assert.True(t, got >= 4e6 && told != 0, "%d bytes, told to wait %s", got, told)
	// An answer comes before the wait that it tells of.
	eventually(t, "its connection is not read for as long", func(context.Context) error {
		// Empty answers are not counted, but are bytes.
		if passed := clock.read().Sub(began); passed < told || float64(got) > rate*(1+passed.Seconds())+50_000 {
			return fmt.Errorf("%d bytes in %s, told to wait %s", got, passed, told)
		}
		return nil
	})
}

func TestNobodyWaitsForTheQuotaOfAnother(t *testing.T) {
	clock, m := newQuotaClock(), newMeter()
	clock.never = true
	b := start(t, nil, clock.set)
	limit(t, b, "slow", metadata.ProducerByteRate, 1)
	produce(t, client(t, b, kgo.ClientID("slow")), "orders", 0, 1) // It is answered at once.
	fast := client(t, b, kgo.ClientID("fast"), kgo.WithHooks(m))
	for i := range 100 {
		produce(t, fast, "orders", 1+i, 1)
	}
	consume(t, b, "orders", 101)
	if _, told := m.read(kmsg.Produce); told != 0 {
		t.Errorf("another client is told to wait %s", told)
	}
	eventually(t, "one connection is not read", func(context.Context) error {
		if waits := clock.waits(); len(waits) != 1 || waits[0] < time.Minute {
			return fmt.Errorf("connections were not read for %v", waits)
		}
		return nil
	})
}

// greeted says whether a new connection is served.
func greeted(t *testing.T, b *broker.Broker) bool {
	t.Helper()
	c, err := net.Dial("tcp", b.Addr())
	if err != nil {
		return false
	}
	t.Cleanup(func() { c.Close() })
	must(t, c.SetDeadline(time.Now().Add(20*time.Second)))
	if _, err := c.Write(kmsg.NewRequestFormatter().AppendRequest(nil, kmsg.NewPtrApiVersionsRequest(), 1)); err != nil {
		return false
	}
	_, err = c.Read(make([]byte, 1000))
	assert.False(t, errors.Is(err, os.ErrDeadlineExceeded), "a connection is neither served nor closed")
	return err == nil
}

func TestAnAddressMayConnectOnlySoOften(t *testing.T) {
	clock := newQuotaClock()
	b := start(t, nil, clock.set)
	change := metadata.QuotaChange{
		Entity: metadata.QuotaEntity{IP: metadata.Some("127.0.0.1")}, Set: map[string]float64{metadata.ConnectionCreationRate: 2},
	}
	must(t, b.AlterQuotas(t.Context(), change))
	for i := range 22 { // As many as all windows hold.
		assert.MustTrue(t, greeted(t, b), "connection %d is refused", i)
	}
	assert.False(t, greeted(t, b), "one too many is served")
	if waits := clock.waits(); len(waits) != 1 || waits[0] != 500*time.Millisecond {
		t.Errorf("it is held for %v", waits)
	}
	if !greeted(t, b) { // Half a second has passed.
		t.Error("the next one in its time is refused")
	}
}

func TestABrokerAcceptsOnlySoManyConnectionsInASecond(t *testing.T) {
	clock := newQuotaClock()
	b := start(t, map[string]string{"max.connection.creation.rate": "2", "quota.window.num": "3"}, clock.set)
	for range 10 {
		assert.MustTrue(t, greeted(t, b), "a connection is refused")
	}
	waits := clock.waits()
	assert.MustTrue(t, len(waits) == 4, "of 10 connections, of which 6 may come at once, %d waited", len(waits))
	for _, d := range waits {
		assert.Equal(t, d, 500*time.Millisecond, "one waited")
	}
}

func TestBrokersAreNotHeldUpWithClients(t *testing.T) {
	clock := newQuotaClock()
	clock.never = true
	b := start(t, map[string]string{
		"max.connection.creation.rate": "1", "quota.window.num": "1",
		"listeners":                      "BETWEEN://127.0.0.1:0,CLIENTS://127.0.0.1:0",
		"listener.security.protocol.map": "BETWEEN:PLAINTEXT,CLIENTS:PLAINTEXT",
	}, clock.set)
	for range 5 {
		if !greeted(t, b) { // The first listener is that of brokers.
			t.Fatal("a connection is refused")
		}
	}
	if waits := clock.waits(); len(waits) != 0 {
		t.Errorf("brokers wait for %v", waits)
	}
}

func TestAnAddressMayHaveItsOwnNumberOfConnections(t *testing.T) {
	b := start(t, map[string]string{"max.connections.per.ip": "1", "max.connections.per.ip.overrides": "10.0.0.1:7, 127.0.0.1:2,[::1]:3"})
	for range 2 {
		assert.True(t, greeted(t, b), "a connection is refused")
	}
	assert.False(t, greeted(t, b), "one too many is served")
	for _, bad := range []string{"127.0.0.1", "127.0.0.1:-1", "127.0.0.1:many", "somewhere:1", ":1"} {
		_, err := broker.Open(context.Background(), broker.Config{Properties: map[string]string{
			"listeners": "PLAINTEXT://127.0.0.1:0", "muster.store": "mem", "max.connections.per.ip.overrides": bad,
		}})
		assert.True(t, err != nil && strings.Contains(err.Error(), "max.connections.per.ip.overrides"), "%q: %v", bad, err)
	}
}
