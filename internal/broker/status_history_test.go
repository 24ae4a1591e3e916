package broker_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"muster/internal/assert"
	"muster/internal/broker"
	"muster/internal/watch"
	"muster/internal/watch/lag"
)

// historyOf returns the lag of a group over time, in points of 16 minutes.
func historyOf(b *broker.Broker, group string) (out []lag.Point) {
	b.Status().Read(func(t *lag.Tracker) { out = t.History(group, 2) })
	return out
}

func TestHistorySurvivesARestart(t *testing.T) {
	now := newClock()
	props := map[string]string{"muster.store": "disk", "log.dir": t.TempDir()}
	b := start(t, props, now.use)
	c := client(t, b, manual())
	makeTopic(t, c, "orders", 1, nil)
	fill(t, c, "orders", 0, 1000)
	for _, group := range []string{"billing", "search"} {
		commit(t, c, group, "orders", 0, 1)
	}
	want := map[int64]bool{}
	for i := range int64(8) { // Two hours.
		now.move(15 * time.Minute)
		commit(t, c, "billing", "orders", 0, 100+100*i)
		seen(t, b, "billing")
		now.move(watch.Interval)
		seen(t, b, "billing")
		want[1000-100-100*i] = true
	}
	if topic := topicOf(t, b.Status().Snapshot(), "__group_history"); !topic.Internal || len(topic.Partitions) != 1 || topic.Partitions[0].End < 2 {
		t.Fatalf("%+v", topic)
	}
	// Another group gets the name of one that was deleted.
	if _, err := kadm.NewClient(c).DeleteGroups(t.Context(), "search"); err != nil {
		t.Fatal(err)
	}
	commit(t, c, "search", "orders", 0, 7)
	seen(t, b, "search")
	now.move(10 * time.Minute)
	seen(t, b, "search") // Now it is due to be written.
	c.Close()
	must(t, b.Close())
	later := &clock{began: now.now().Add(time.Hour)}
	b = start(t, props, later.use)
	eventually(t, "the history is read", func(context.Context) error {
		later.move(watch.Interval)
		b.Status().Pass(t.Context())
		found := 0
		for _, p := range historyOf(b, "billing") {
			if want[p.Lag] {
				found++
			}
		}
		if found < len(want)-1 {
			return fmt.Errorf("%d of %d: %v", found, len(want), historyOf(b, "billing"))
		}
		return nil
	})
	for _, p := range historyOf(b, "search") {
		if p.Lag == 999 {
			t.Errorf("the group has the past of one that was deleted: %v", historyOf(b, "search"))
		}
	}
	assert.True(t, len(historyOf(b, "search")) != 0, "of the second group of that name nothing is known")
}
