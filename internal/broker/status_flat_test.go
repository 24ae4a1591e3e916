package broker_test

import (
	"testing"
	"time"

	"muster/internal/broker"
	"muster/internal/watch"
	"muster/internal/web"
)

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
	if len(h.Points) < 12 || len(h.Points) > 14 || len(h.Positions) < 2 || int64(h.Positions[0].Committed) != 3 {
		t.Fatalf("%+v", h)
	}
	for i, p := range h.Points {
		if p.Lag != 7 || i > 0 && p.LagSeconds <= h.Points[i-1].LagSeconds {
			t.Errorf("%+v after %+v", p, h.Points[max(i-1, 0)])
		}
	}
	if last := h.Points[len(h.Points)-1].LagSeconds; last < 119 || last > (3*time.Minute).Seconds() {
		t.Errorf("in the end %v s", last)
	}
}
