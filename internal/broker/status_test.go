package broker_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"muster/internal/assert"
	"muster/internal/broker"
	"muster/internal/watch"
	"muster/internal/watch/lag"
	"muster/internal/watch/list"
	"muster/internal/web"
)

// clock is a clock that stands still until a test moves it on. It begins in the present:
// records have the time of the client.
type clock struct {
	began time.Time
	moved atomic.Int64
}

func newClock() *clock { return &clock{began: time.Now()} }

func (c *clock) now() time.Time { return c.began.Add(time.Duration(c.moved.Load())) }

func (c *clock) move(d time.Duration) { c.moved.Add(int64(d)) }

// use has a broker go by the clock.
func (c *clock) use(cfg *broker.Config) { cfg.Clock(c.now, nil) }

// seen makes a pass and returns a group.
func seen(t *testing.T, b *broker.Broker, group string) *list.GroupRow {
	t.Helper()
	b.Status().Pass(t.Context())
	s, ok := b.Status().Snapshot().Groups.Get(group)
	if !ok {
		t.Fatalf("there is no group %s among %d", group, b.Status().Snapshot().Groups.Len())
	}
	return s
}

// partitionsOf returns what the tracker says of a group.
func partitionsOf(b *broker.Broker, group string) (out []lag.PartitionLag) {
	b.Status().Read(func(t *lag.Tracker) { out = t.Partitions(group) })
	return out
}

// makeTopic creates a topic.
func makeTopic(t *testing.T, c *kgo.Client, name string, partitions int32, configs map[string]*string) {
	t.Helper()
	if _, err := kadm.NewClient(c).CreateTopic(t.Context(), partitions, -1, configs, name); err != nil {
		t.Fatal(err)
	}
}

// fill produces records to a partition.
func fill(t *testing.T, c *kgo.Client, topic string, partition int32, n int) {
	t.Helper()
	var recs []*kgo.Record
	for range n {
		recs = append(recs, &kgo.Record{Topic: topic, Partition: partition, Value: []byte("value")})
	}
	must(t, c.ProduceSync(t.Context(), recs...).FirstErr())
}

// commit commits an offset for a group from outside.
func commit(t *testing.T, c *kgo.Client, group, topic string, partition int32, at int64) {
	t.Helper()
	var o kadm.Offsets
	o.Add(kadm.Offset{Topic: topic, Partition: partition, At: at})
	eventually(t, "commit", func(ctx context.Context) error { return kadm.NewClient(c).CommitAllOffsets(ctx, group, o) })
}

func manual() kgo.Opt { return kgo.RecordPartitioner(kgo.ManualPartitioner()) }

func TestLagIsWhatAClientWouldCount(t *testing.T) {
	for _, st := range []string{"mem", "disk"} {
		t.Run(st, func(t *testing.T) {
			now := newClock()
			b := start(t, map[string]string{"muster.store": st, "log.dir": t.TempDir()}, now.use)
			c := client(t, b, manual())
			makeTopic(t, c, "orders", 3, nil)
			for p := range int32(3) {
				fill(t, c, "orders", p, 100)
			}
			commit(t, c, "billing", "orders", 0, 40)
			commit(t, c, "billing", "orders", 1, 100)
			got := seen(t, b, "billing")
			if got.Lag != 60 || got.LagUnknown || got.Partitions != 2 || got.State != "Empty" || got.Type != "classic" || !slices.Equal(got.Topics, []string{"orders"}) {
				t.Errorf("%+v", got)
			}
			assert.EqualSlices(t, got.Findings, []string{"lag-without-members"}, "findings")
			fill(t, c, "orders", 0, 5)
			if _, err := kadm.NewClient(c).DeleteRecords(t.Context(), offsetsOf("orders", 0, 50)); err != nil {
				t.Fatal(err)
			}
			if got := seen(t, b, "billing"); got.Lag != 55 { // 50 to 105: what is deleted is not there to read.
				t.Errorf("after records were deleted: %+v", got)
			}
			commit(t, c, "billing", "orders", 0, 1000) // Beyond the end.
			if got := seen(t, b, "billing"); got.Lag != 0 || got.LagSeconds != 0 || got.CatchUpSeconds == nil || *got.CatchUpSeconds != 0 {
				t.Errorf("beyond the end: %+v", got)
			}
			orders := topicOf(t, b.Status().Snapshot(), "orders")
			if p := orders.Partitions[0]; !p.Here || p.Leader != b.NodeID() || p.Start != 50 || p.End != 105 || p.LastStable != 105 || p.Bytes <= 0 || !p.Dense {
				t.Errorf("%+v", p)
			}
			assert.True(t, topicOf(t, b.Status().Snapshot(), "__consumer_offsets").Internal, "__consumer_offsets is not internal")
		})
	}
}

func topicOf(t *testing.T, s *watch.Snapshot, name string) *watch.Topic {
	t.Helper()
	for i := range s.Topics {
		if s.Topics[i].Name == name {
			return &s.Topics[i]
		}
	}
	t.Fatalf("there is no topic %s", name)
	return nil
}

func offsetsOf(topic string, partition int32, at int64) kadm.Offsets {
	var o kadm.Offsets
	o.Add(kadm.Offset{Topic: topic, Partition: partition, At: at})
	return o
}

// After a restart the tracker knows of no time, and asks the records.
func TestLagInSecondsIsTheAgeOfTheFirstUnreadRecord(t *testing.T) {
	now := newClock()
	props := map[string]string{"muster.store": "disk", "log.dir": t.TempDir()}
	b := start(t, props, now.use)
	c := client(t, b, manual())
	makeTopic(t, c, "orders", 1, nil)
	fill(t, c, "orders", 0, 10)
	now.move(time.Minute)
	commit(t, c, "billing", "orders", 0, 10)
	seen(t, b, "billing")
	now.move(watch.Interval)
	before := time.Now()
	fill(t, c, "orders", 0, 10)
	after := time.Now()
	seen(t, b, "billing")
	now.move(5 * time.Minute)
	if got := seen(t, b, "billing"); got.LagSeconds < 295 || got.LagSeconds > 325 {
		t.Errorf("five minutes after the record: %v s", got.LagSeconds)
	}
	must(t, b.Close())
	later := &clock{began: now.began}
	later.move(time.Hour)
	b = start(t, props, later.use)
	// By the record's own time, which is the client's.
	least, most := later.now().Sub(after)-time.Second, later.now().Sub(before)+time.Second
	eventually(t, "an hour after the record, of which only the disk knows", func(ctx context.Context) error {
		b.Status().Pass(ctx)
		got, ok := b.Status().Snapshot().Groups.Get("billing")
		if !ok || got.Lag != 10 || got.LagSeconds < least.Seconds() || got.LagSeconds > most.Seconds() {
			return fmt.Errorf("%+v, not of %v to %v", got, least, most)
		}
		return nil
	})
}

// Records without a timestamp are not as old as the year 1970.
func TestRecordsWithoutATimeAreNotOld(t *testing.T) {
	props := map[string]string{"muster.store": "disk", "log.dir": t.TempDir()}
	b := start(t, props)
	c := client(t, b)
	makeTopic(t, c, "orders", 1, nil)
	must(t, c.ProduceSync(t.Context(), &kgo.Record{Topic: "orders", Value: []byte("x"), Timestamp: time.UnixMilli(-1)}).FirstErr())
	commit(t, c, "billing", "orders", 0, 0)
	must(t, b.Close())
	b = start(t, props)
	eventually(t, "the group", func(ctx context.Context) error {
		b.Status().Pass(ctx)
		got, ok := b.Status().Snapshot().Groups.Get("billing")
		if !ok || got.Lag != 1 {
			return fmt.Errorf("%+v", got)
		}
		assert.True(t, got.LagSeconds <= 3600, "it is %v s behind", got.LagSeconds)
		return nil
	})
}

// TestStuckPartitionsAreToldByWhoFetches has real members that read, that pause, and that
// are no more.
func TestStuckPartitionsAreToldByWhoFetches(t *testing.T) {
	now := newClock()
	b := start(t, map[string]string{"group.initial.rebalance.delay.ms": "0"}, now.use)
	c := client(t, b, manual())
	makeTopic(t, c, "orders", 3, nil)
	for p := range int32(3) {
		fill(t, c, "orders", p, 10)
	}
	for p := range int32(3) {
		commit(t, c, "billing", "orders", p, 1)
	}
	member := client(t, b, kgo.ClientID("billing-app"), kgo.ConsumerGroup("billing"), kgo.ConsumeTopics("orders"), kgo.DisableAutoCommit(), kgo.FetchMaxWait(50*time.Millisecond))
	read := map[int32]int{}
	poll := func() {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		member.PollFetches(ctx).EachRecord(func(r *kgo.Record) { read[r.Partition]++ })
	}
	for len(read) < 3 || read[0]+read[1]+read[2] < 27 {
		poll()
	}
	member.PauseFetchPartitions(map[string][]int32{"orders": {1}})
	verdicts := func() (out [3]lag.Verdict) {
		for _, p := range partitionsOf(b, "billing") {
			out[p.Partition] = p.Verdict
		}
		return out
	}
	for i := range 40 { // Nearly seven minutes. Partition 2 goes on.
		now.move(watch.Interval)
		fill(t, c, "orders", 0, 1)
		fill(t, c, "orders", 2, 1)
		for read[0] < 9+i+1 || read[2] < 9+i+1 {
			poll()
		}
		must(t, member.CommitRecords(t.Context(), &kgo.Record{Topic: "orders", Partition: 2, Offset: int64(9 + i)}))
		b.Status().Pass(t.Context())
	}
	assert.Equal(t, verdicts(), [3]lag.Verdict{lag.NotCommitting, lag.NotFetching, lag.Fine})
	s := seen(t, b, "billing")
	if s.Stuck != 2 || s.Members != 1 || !slices.Contains(s.Findings, "stuck-partition") || s.State != "Stable" || s.Cause != "joined" || s.Rebalanced.IsZero() {
		t.Errorf("%+v", s)
	}
	member.Close()
	now.move(watch.Interval)
	eventually(t, "the member has left", func(context.Context) error {
		if s := seen(t, b, "billing"); s.Members != 0 || s.Stuck != 0 || !slices.Contains(s.Findings, "lag-without-members") {
			return fmt.Errorf("%+v", s)
		}
		return nil
	})
}

// The chart of a group whose lag never changed is a flat line that becomes older.
func TestTheAPIDrawsAGroupThatStandsStill(t *testing.T) {
	now := newClock()
	b := start(t, map[string]string{"muster.http.listener": "127.0.0.1:0"}, func(c *broker.Config) { now.use(c) })
	c := client(t, b, manual())
	makeTopic(t, c, "orders", 1, nil)
	fill(t, c, "orders", 0, 10)
	commit(t, c, "billing", "orders", 0, 3)
	seen(t, b, "billing")
	for range 12 {
		now.move(watch.Interval)
		b.Status().Pass(t.Context())
	}
	h := answer[web.History](t, b, "/groups/billing/history?topic=orders&partition=0")
	assert.MustTrue(t, len(h.Points) >= 12 && len(h.Points) <= 14 && len(h.Positions) >= 2 && int64(h.Positions[0].Committed) == 3, "%+v", h)
	for i, p := range h.Points {
		if p.Lag != 7 || i > 0 && p.LagSeconds <= h.Points[i-1].LagSeconds {
			t.Errorf("%+v after %+v", p, h.Points[max(i-1, 0)])
		}
	}
	if last := h.Points[len(h.Points)-1].LagSeconds; last < 119 || last > (3*time.Minute).Seconds() {
		t.Errorf("in the end %v s", last)
	}
}
