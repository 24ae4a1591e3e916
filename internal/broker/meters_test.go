package broker

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"muster/internal/arrivals"
	"muster/internal/assert"
	"muster/internal/auth"
	"muster/internal/journal"
	"muster/internal/listener"
	"muster/internal/metadata"
	"muster/internal/metadata/config"
	"muster/internal/meter"
	"muster/internal/quota"
	"muster/internal/watch/lag"
	"muster/internal/web/metrics"
)

// counting is a broker that counts, and does nothing else.
func counting() *Broker {
	return &Broker{meters: meter.New(), logger: slog.New(slog.DiscardHandler)}
}

func TestRebalancesAreCountedByWhatBeganThem(t *testing.T) {
	b, now := counting(), time.Now()
	left, joined := []journal.Trigger{{Kind: journal.TriggerLeft}, {Kind: journal.TriggerJoined}}, []journal.Trigger{{Kind: journal.TriggerJoined}}
	b.countRebalances([]journal.Entry{
		{Time: now, Group: "a", Kind: journal.KindStarted, Triggers: left},
		{Time: now, Group: "a", Kind: journal.KindSettled, Triggers: left, Started: now, JoinPhase: time.Second, SyncPhase: time.Minute, After: 1},
		{Time: now, Group: "a", Kind: journal.KindSettled, Triggers: left, Started: now, JoinPhase: time.Second, SyncPhase: time.Minute}, // All have left.
		{Time: now, Group: "a", Kind: journal.KindSettled, Triggers: left, Started: now, JoinPhase: -time.Second, SyncPhase: 1 << 62, After: 1},
		{Time: now, Group: "b", Kind: journal.KindEpoch, Type: journal.TypeConsumer, Triggers: joined},
		{Time: now, Group: "b", Kind: journal.KindTarget, Type: journal.TypeConsumer, Triggers: joined},
		{Time: now, Group: "b", Kind: journal.KindSettled, Type: journal.TypeConsumer, Started: now.Add(-time.Hour), After: 1},
		{Time: now, Group: "c", Kind: journal.KindStarted},
		{Time: now, Group: "d", Kind: journal.KindStarted, Triggers: joined},
		{Time: now, Group: "d", Kind: journal.KindDeleted},
	})
	assert.Equal(t, fmt.Sprint(b.meters.Groups.Read()), "map[a:[{left 1}] b:[{joined 1}] c:[{unknown 1}]]")
	phases := b.meters.Groups.Phases()
	for phase, want := range map[string]time.Duration{meter.Join: time.Second, meter.Sync: time.Minute, meter.Reconcile: time.Hour} {
		if got := phases[phase]; got.Count() != 1 || got.Sum != want {
			t.Errorf("%s: %d, %s", phase, got.Count(), got.Sum)
		}
	}
}

func TestDenialsAreCounted(t *testing.T) {
	b := counting()
	for _, name := range []string{"a", "b"} {
		b.denied(auth.Request{Operation: auth.Read, Type: auth.Topic, Name: name})
	}
	assert.Equal(t, fmt.Sprint(b.meters.Denials.Read()), "map[[read topic ]:2]")
}

func TestEntriesThatJournalsLeaveOutAreCounted(t *testing.T) {
	b := counting()
	dropped := func(want uint64) {
		t.Helper()
		assert.Equal(t, b.meters.JournalDropped.Load(), want, "dropped")
	}
	j := newJournal(b, groupJournal)
	two := []journal.Entry{{Group: "a"}, {Group: "a"}}
	for j.Free() > 0 {
		j.Add(two)
	}
	dropped(0)
	j.Add(two)
	dropped(2)
}

func TestWaitsOfConnectionsAreCounted(t *testing.T) {
	b := counting()
	b.knowThrottled()
	set, err := config.NewBroker(map[string]string{"max.connection.creation.rate": "1"})
	assert.Must(t, err)
	image, now := metadata.NewImage(set), time.Now()
	a := arrivals.New(func() *metadata.Image { return image }, func() time.Time { return now }, b.throttled)
	var waited time.Duration
	for range 100 {
		waited += a.On("PLAINTEXT")
	}
	got := b.meters.Throttled.Read()
	if waited == 0 || len(got) != len(throttleKinds) || got[meter.Labels{"connection"}] != waited.Seconds() || got[meter.Labels{"produce"}] != 0 {
		t.Errorf("%v, waited %s", got, waited)
	}
	b.throttled(quota.Fetched, time.Second)
	if got := b.meters.Throttled.Read(); got[meter.Labels{"fetch"}] != 1 {
		t.Errorf("%v", got)
	}
}

func TestEntriesThatCannotBeWrittenAreCounted(t *testing.T) {
	b, err := Open(t.Context(), Config{Properties: map[string]string{"listeners": "PLAINTEXT://127.0.0.1:0", "muster.store": "mem"}})
	assert.Must(t, err)
	defer b.Close()
	kind := groupJournal
	kind.Topic = "no name!" // It cannot be created.
	ended, end := context.WithCancel(t.Context())
	end()
	j := newJournal(b, kind)
	j.Add([]journal.Entry{{Group: "a"}, {Group: "a"}})
	j.Run(ended)
	assert.Equal(t, b.meters.JournalDropped.Load(), 2, "dropped")
}

// TestMetricsAreThereFromTheStartToTheEnd asks before the broker has a store, while it
// runs, while Redis is said to be away, and after its end.
func TestMetricsAreThereFromTheStartToTheEnd(t *testing.T) {
	cfg := Config{Properties: map[string]string{"listeners": "PLAINTEXT://127.0.0.1:0", "muster.store": "disk", "log.dir": t.TempDir()}}
	set, err := config.NewBroker(cfg.Properties)
	assert.Must(t, err)
	b := counting()
	b.cfg, b.server = set, listener.NewServer(listener.Options{Logger: b.logger})
	first := measured{b}.Cluster()
	if first.State != metrics.Starting || first.ID != "" || len(first.Brokers) != 0 || !first.StoreUp || !first.Flushes {
		t.Errorf("before the start: %+v", first)
	}
	measured{b}.Read(func(*lag.Tracker) { t.Error("there is a tracker before there is a watch") })
	if s := (measured{b}).Snapshot(); !s.At.IsZero() || s.Groups.Len() != 0 {
		t.Errorf("before the start: %+v", s)
	}
	if b, err = Open(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	now := measured{b}.Cluster()
	if now.State != metrics.Running || now.ID == "" || len(now.Brokers) != 1 || now.Brokers[0].Address != b.Addr() || !now.StoreUp || !now.Controller || !now.OneCopy || now.DiskSize <= 0 {
		t.Errorf("running: %+v", now)
	}
	b.away.Store(&redisAway{})
	assert.False(t, (measured{b}).Cluster().StoreUp, "the store is up though it is away")
	b.away.Store(nil)
	assert.Must(t, b.Close())
	if c := (measured{b}).Cluster(); c.State != metrics.Stopping {
		t.Errorf("in the end: %+v", c)
	}
	w := httptest.NewRecorder()
	b.metricsHandler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	assert.True(t, w.Code == http.StatusOK && strings.Contains(w.Body.String(), "kafka_server_kafkaserver_brokerstate 6"), "in the end: %d", w.Code)
}
