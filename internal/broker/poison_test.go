package broker_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"muster/internal/assert"
	"muster/internal/broker"
)

// die joins billing, reads a record, and leaves without a commit.
func die(t *testing.T, b *broker.Broker, opts ...kgo.Opt) {
	t.Helper()
	member := client(t, b, append([]kgo.Opt{
		kgo.ClientID("billing-app"), kgo.ConsumerGroup("billing"), kgo.ConsumeTopics("orders"), kgo.DisableAutoCommit(), kgo.FetchMaxWait(50 * time.Millisecond),
	}, opts...)...)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for read := false; !read; {
		fs := member.PollFetches(ctx)
		if ctx.Err() != nil {
			t.Fatalf("it reads nothing: %v", fs.Err())
		}
		fs.EachRecord(func(*kgo.Record) { read = true })
	}
	member.Close()
	eventually(t, "it has left", func(context.Context) error {
		if s := seen(t, b, "billing"); s.Members != 0 {
			return fmt.Errorf("%+v", s)
		}
		return nil
	})
}

// TestARecordThatKillsItsReadersIsSuspected has real members that die at it, one by one.
func TestARecordThatKillsItsReadersIsSuspected(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]kgo.Opt{"classic": nil, "consumer": {kgo.ServerSideBalancer(), kgo.Balancers(kgo.RangeBalancer())}} {
		t.Run(name, func(t *testing.T) {
			now := newClock()
			b := start(t, map[string]string{"group.initial.rebalance.delay.ms": "0"}, now.use)
			c := client(t, b, manual())
			makeTopic(t, c, "orders", 2, nil)
			for p, at := range []int64{4, 10} { // Of the second it has read all.
				fill(t, c, "orders", int32(p), 10)
				commit(t, c, "billing", "orders", int32(p), at)
			}
			for range 3 {
				if s := seen(t, b, "billing"); s.Poison != 0 {
					t.Fatalf("%+v", s)
				}
				die(t, b, opts...)
				now.move(time.Minute)
			}
			eventually(t, "a suspect", func(context.Context) error {
				if s := seen(t, b, "billing"); s.Poison != 1 || s.Findings[0] != "poison-suspect" || partitionsOf(b, "billing")[0].Deaths != 3 {
					return fmt.Errorf("%+v", s)
				}
				return nil
			})
			awaitSuspicion(t, b)
			commit(t, c, "billing", "orders", 0, 5) // Past the record.
			if s := seen(t, b, "billing"); s.Poison != 0 {
				t.Errorf("%+v", s)
			}
		})
	}
}

// awaitSuspicion waits until the journal tells of it.
func awaitSuspicion(t *testing.T, b *broker.Broker) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	reader := client(t, b, kgo.ConsumeTopics("__group_journal"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	for told := false; !told; {
		fs := reader.PollFetches(ctx)
		assert.Must(t, ctx.Err(), "the journal does not tell of it")
		fs.EachRecord(func(r *kgo.Record) {
			told = told || string(r.Key) == "billing" && strings.Contains(string(r.Value), `"kind":"poison-suspected"`) && strings.Contains(string(r.Value), `"committed":"4"`)
		})
	}
}
