package broker_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"

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
			if p.To == nil || *p.To == 0 || p.LogEnd == nil || *p.To != *p.LogEnd || p.Skipped != nil {
				t.Errorf("the plan is %+v", p)
			}
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
