package broker_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"muster/internal/assert"
	"muster/internal/broker"
	"muster/internal/web"
)

// In a fleet the broker that has something does it, whichever was asked; where
// partitions lie does not matter for a plan. Offsets of streams are no numbers of records.
func TestInAFleetTheOneThatHasSomethingDoesIt(t *testing.T) {
	_, brokers := fleet(t, 2, func(c *broker.Config) {
		c.Properties["muster.http.listener"], c.Properties["muster.redis.layout"] = "127.0.0.1:0", "stream"
	})
	c := client(t, brokers[0], manual())
	does[web.Done](t, brokers[1], http.MethodPost, "/topics", `{"name":"orders","partitions":8}`)
	eventually(t, "leaders", func(context.Context) error {
		for _, b := range brokers {
			topic := b.Image().Topic("orders")
			if topic == nil || len(topic.Partitions) != 8 {
				return fmt.Errorf("broker %d does not know it", b.NodeID())
			}
		}
		return nil
	})
	for i := range 8 {
		body := fmt.Sprintf(`{"partition":%d,"value":"x"}`, i)
		eventually(t, "to produce", func(context.Context) error {
			for _, b := range brokers {
				if code, _, text := send(t, b, http.MethodPost, "/topics/orders/records", body); code != http.StatusOK {
					return fmt.Errorf("%d %s", code, text)
				}
			}
			return nil
		})
	}
	for i := range int32(8) {
		commit(t, c, "billing", "orders", i, 0)
	}
	for _, b := range brokers {
		plan := does[web.ResetPlan](t, b, http.MethodPost, "/groups/billing/resets", `{"to":"end"}`)
		for _, p := range plan.Partitions {
			assert.True(t, p.To != nil && *p.To != 0 && p.LogEnd != nil && *p.To == *p.LogEnd && p.Skipped == nil, "the plan is %+v", p)
		}
		does[web.Done](t, b, http.MethodPost, "/groups/billing/resets/execute", orderOf(t, &plan))
		if got := committedIn(t, c, "billing", "orders"); len(got) != 8 || got[0] == 0 {
			t.Errorf("it is at %v", got)
		}
		for i := range int32(8) {
			commit(t, c, "billing", "orders", i, 0)
		}
	}
}

// The partitions of a topic have different leaders, and who wants all their records deleted
// does not have to know that.
func TestAFleetDeletesRecordsWhereTheyAreLed(t *testing.T) {
	_, brokers := fleet(t, 3, withHTTP)
	does[web.Done](t, brokers[1], http.MethodPost, "/topics", `{"name":"orders","partitions":60}`)
	c := client(t, brokers[0], manual())
	leaders := map[int32]bool{}
	var body []string
	for i := range int32(60) {
		must(t, c.ProduceSync(t.Context(), &kgo.Record{Topic: "orders", Partition: i, Value: []byte("x")}).FirstErr())
		leaders[brokers[0].Image().Topic("orders").Partitions[i].Leader] = true
		body = append(body, fmt.Sprintf(`{"partition":%d,"offset":"-1"}`, i))
	}
	assert.MustEqual(t, len(leaders), 3, "the leaders are %v", leaders)
	all := `{"partitions":[` + strings.Join(body, ",") + `]}`
	for _, b := range brokers { // The second and third time nothing is left to delete.
		done := does[web.Done](t, b, http.MethodDelete, "/topics/orders/records", all)
		if n := len(done.Sentences); n != 52 || done.Sentences[0] != `Records of 60 partitions of topic "orders" were deleted.` || done.Sentences[51] != "And so on in 10 more." {
			t.Errorf("%d sentences: %q", n, done.Sentences)
		}
		for _, s := range done.Sentences[1:51] {
			assert.True(t, strings.HasSuffix(s, " begins at offset 1 now."), "%v", s)
		}
	}
	starts, err := kadm.NewClient(c).ListStartOffsets(t.Context(), "orders")
	must(t, err)
	starts.Each(func(o kadm.ListedOffset) {
		assert.True(t, o.Err == nil && o.Offset == 1, "partition %d begins at %d, %v", o.Partition, o.Offset, o.Err)
	})
	code, _, text := send(t, brokers[0], http.MethodDelete, "/topics/orders/records", `{"partitions":[{"partition":0,"offset":"1"},{"partition":1,"offset":"2"},{"partition":2,"offset":"1"}]}`)
	assert.True(t, code == http.StatusBadRequest && strings.Contains(text, "the offset lies beyond the end of partition 1"), "%d %s", code, text)
}
