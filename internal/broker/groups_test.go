package broker_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"muster/internal/assert"
	"muster/internal/broker"
)

// quick are settings that keep group tests short.
var quick = map[string]string{"num.partitions": "4", "group.initial.rebalance.delay.ms": "0", "group.min.session.timeout.ms": "100"}

func groupConsumer(t *testing.T, b *broker.Broker, group string, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	return client(t, b, append([]kgo.Opt{
		kgo.ConsumerGroup(group), kgo.ConsumeTopics("orders"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.DisableAutoCommit(),
	}, opts...)...)
}

// take polls until n records have come, and commits them.
func take(t *testing.T, c *kgo.Client, n int) map[string]bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	got := map[string]bool{}
	for len(got) < n {
		fs := c.PollFetches(ctx)
		assert.Must(t, fs.Err(), "after %d of %d records", len(got), n)
		fs.EachRecord(func(r *kgo.Record) { got[string(r.Key)] = true })
	}
	must(t, c.CommitUncommittedOffsets(ctx))
	return got
}

func TestAGroupGoesOnWhereItCommittedAlsoAfterARestart(t *testing.T) {
	props := map[string]string{"muster.store": "disk", "log.dir": t.TempDir()}
	maps.Copy(props, quick)
	b := start(t, props)
	produce(t, client(t, b), "orders", 0, 100)
	first := groupConsumer(t, b, "g")
	take(t, first, 100)
	first.Close()
	must(t, b.Close())
	b = start(t, props)
	produce(t, client(t, b), "orders", 100, 50)
	got := take(t, groupConsumer(t, b, "g"), 50)
	for i := range 100 {
		assert.MustFalse(t, got[fmt.Sprint(i)], "record %d came again", i)
	}
	adm := kadm.NewClient(client(t, b))
	lag, err := adm.Lag(t.Context(), "g")
	must(t, err)
	if total := lag["g"].Lag.Total(); total != 0 || lag["g"].State != "Stable" {
		t.Errorf("lag %d, state %s", total, lag["g"].State)
	}
}

// What happens to topics reaches the groups: offsets go with their topic, and a
// topic of the same name begins without any.
func TestOffsetsGoWithTheirTopic(t *testing.T) {
	b := start(t, quick)
	c := client(t, b)
	produce(t, c, "orders", 0, 10)
	consumer := groupConsumer(t, b, "g")
	take(t, consumer, 10)
	consumer.Close()
	adm := kadm.NewClient(c)
	if got, err := adm.FetchOffsets(t.Context(), "g"); err != nil || len(got["orders"]) == 0 {
		t.Fatalf("committed is %v, %v", got, err)
	}
	if _, err := adm.DeleteTopic(t.Context(), "orders"); err != nil {
		t.Fatal(err)
	}
	if _, err := adm.CreateTopic(t.Context(), 4, 1, nil, "orders"); err != nil {
		t.Fatal(err)
	}
	if got, err := adm.FetchOffsets(t.Context(), "g"); err != nil || len(got["orders"]) != 0 {
		t.Errorf("committed is %v, %v", got, err)
	}
}

// The journal is written: whoever asks why a group rebalanced finds out.
func TestWhatHappensToGroupsIsInTheJournal(t *testing.T) {
	b := start(t, quick)
	c := client(t, b)
	produce(t, c, "orders", 0, 10)
	take(t, groupConsumer(t, b, "g"), 10)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	reader := client(t, b, kgo.ConsumeTopics("__group_journal"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	for settled := false; !settled; {
		fs := reader.PollFetches(ctx)
		assert.Must(t, ctx.Err(), "no rebalance of the group is in the journal")
		fs.EachRecord(func(r *kgo.Record) {
			settled = settled || string(r.Key) == "g" && strings.Contains(string(r.Value), `"kind":"rebalance-settled"`)
		})
	}
}
