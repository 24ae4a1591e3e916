package broker_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/twmb/franz-go/pkg/kgo"

	"muster/internal/assert"
	"muster/internal/broker"
	"muster/internal/redistest"
	"muster/internal/watch"
	"muster/internal/watch/lag"
)

// coordinating returns the broker that has a group.
func coordinating(t *testing.T, brokers []*broker.Broker, group string) (has *broker.Broker) {
	t.Helper()
	eventually(t, "somebody has the group", func(ctx context.Context) error {
		for _, b := range brokers {
			b.Status().Pass(ctx)
			if _, ok := b.Status().Snapshot().Groups.Get(group); ok {
				has = b
				return nil
			}
		}
		return fmt.Errorf("nobody has %s", group)
	})
	return has
}

// In a fleet a coordinator knows the lag of what others lead, and who fetches it there.
func TestLagOfAFleetIsKnownWhereTheGroupIs(t *testing.T) {
	t.Parallel()
	now := newClock()
	_, brokers := fleet(t, 2, now.use)
	c := client(t, brokers[0], manual())
	for p := range int32(3) {
		fill(t, c, "t", p, 10)
		commit(t, c, "billing", "t", p, 1)
	}
	b := coordinating(t, brokers, "billing")
	elsewhere := 0
	for _, p := range topicOf(t, b.Status().Snapshot(), "t").Partitions {
		if p.Leader != b.NodeID() {
			elsewhere++
		}
	}
	assert.MustTrue(t, elsewhere != 0, "the coordinator leads all partitions")
	eventually(t, "the other broker answers in time", func(context.Context) error {
		if got := seen(t, b, "billing"); got.LagUnknown || got.Lag != 28 { // One is from the start of the fleet.
			return fmt.Errorf("%+v", got)
		}
		return nil
	})
	member := client(t, brokers[0], kgo.ClientID("billing-app"), kgo.ConsumerGroup("billing"), kgo.ConsumeTopics("t"), kgo.DisableAutoCommit(), kgo.FetchMaxWait(50*time.Millisecond))
	read := map[int32]int64{}
	poll := func() {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		member.PollFetches(ctx).EachRecord(func(r *kgo.Record) { read[r.Partition] = r.Offset })
	}
	for i := range int64(40) { // Nearly seven minutes.
		now.move(watch.Interval)
		for p := range int32(3) {
			fill(t, c, "t", p, 1)
		}
		for read[0] < 10+i || read[1] < 10+i || read[2] < 10+i {
			poll()
		}
		b.Status().Pass(t.Context())
	}
	verdicts := func(what string, want lag.Verdict, moves time.Duration) {
		t.Helper()
		eventually(t, what, func(ctx context.Context) error {
			now.move(moves)
			b.Status().Pass(ctx)
			for _, p := range partitionsOf(b, "billing") {
				if p.Verdict != want || !p.Known || p.Lag < 49 {
					return fmt.Errorf("%+v", p)
				}
			}
			return nil
		})
	}
	verdicts("while it is fetched", lag.NotCommitting, 0)
	// A fetch that was under way may still come, but no new one.
	member.PauseFetchTopics("t")
	verdicts("while it is not fetched", lag.NotFetching, watch.Interval)
}

// Lag is a number of records, also of those that Kafka clients have not written; where offsets
// are times, Redis counts them.
func TestLagInRedisIsANumberOfRecords(t *testing.T) {
	s := redistest.Single(t)
	for layout, dense := range map[string]bool{"stream": false, "indexed": true} {
		t.Run(layout, func(t *testing.T) { lagIsANumberOfRecords(t, s, layout, dense) })
	}
}

func lagIsANumberOfRecords(t *testing.T, s *redistest.Server, layout string, dense bool) {
	now, prefix := newClock(), redistest.Prefix(t)
	b := start(t, map[string]string{
		"muster.store": "redis", "muster.redis.url": s.URL(), "muster.redis.prefix": prefix, "muster.redis.layout": layout,
	}, now.use)
	c := client(t, b, manual())
	makeTopic(t, c, "orders", 1, nil)
	var offsets []int64
	for range 20 {
		r := &kgo.Record{Topic: "orders", Value: []byte("value")}
		must(t, c.ProduceSync(t.Context(), r).FirstErr())
		offsets = append(offsets, r.Offset)
	}
	commit(t, c, "billing", "orders", 0, offsets[14]+1)
	eventually(t, "Redis counts", func(context.Context) error {
		got := seen(t, b, "billing")
		if got.LagUnknown {
			return fmt.Errorf("%+v", got)
		}
		assert.Equal(t, got.Lag, 5, "%+v, of offsets %v", got, offsets)
		return nil
	})
	assert.Equal(t, topicOf(t, b.Status().Snapshot(), "orders").Partitions[0].Dense, dense, "dense")
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{s.Nodes[0].Addr()}, DisableCache: true})
	must(t, err)
	defer client.Close()
	key := prefix + ":orders:0"
	for range 3 {
		must(t, client.Do(t.Context(), client.B().Xadd().Key(key).Id("*").FieldValue().FieldValue("value", "theirs").Build()).Error())
	}
	n, err := client.Do(t.Context(), client.B().Xlen().Key(key).Build()).AsInt64()
	if got := seen(t, b, "billing"); err != nil || n != 23 || got.Lag != n-15 || got.LagUnknown {
		t.Errorf("%+v, of %d (%v)", got, n, err)
	}
	now.move(10 * time.Minute)
	if got := seen(t, b, "billing"); got.LagSeconds < 595 || got.LagSeconds > 660 {
		t.Errorf("ten minutes later: %v s", got.LagSeconds)
	}
}
