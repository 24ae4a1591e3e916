package broker_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"muster/internal/broker"
)

// transact writes a record in a transaction, and ends it.
func transact(t *testing.T, c *kgo.Client, topic string, how kgo.TransactionEndTry) {
	t.Helper()
	must(t, c.BeginTransaction())
	must(t, c.ProduceSync(t.Context(), &kgo.Record{Topic: topic, Value: []byte("x")}).FirstErr())
	must(t, c.EndTransaction(t.Context(), how))
}

// Clients commit the offset after the last record that they have seen. After it there may be
// the end of a transaction, and one that was aborted: they are not behind, at the leader and
// at a coordinator elsewhere.
func TestNobodyIsBehindForTheEndOfATransaction(t *testing.T) {
	for name, begin := range map[string]func(*testing.T) []*broker.Broker{
		"alone": func(t *testing.T) []*broker.Broker { return []*broker.Broker{start(t, nil)} },
		"in a fleet": func(t *testing.T) []*broker.Broker {
			_, brokers := fleet(t, 2)
			return brokers
		},
	} {
		t.Run(name, func(t *testing.T) {
			brokers := begin(t)
			c := client(t, brokers[0], kgo.TransactionalID("writer"), kgo.DefaultProduceTopic("paid"))
			makeTopic(t, c, "paid", 1, nil)
			transact(t, c, "paid", kgo.TryCommit)
			transact(t, c, "paid", kgo.TryAbort)
			plain := client(t, brokers[0])
			for _, group := range []string{"one", "two", "three", "four"} { // At both coordinators.
				commit(t, plain, group, "paid", 0, 1)
			}
			commit(t, plain, "behind", "paid", 0, 0)
			eventually(t, "the end of both transactions to be seen at rest", func(context.Context) error {
				look(t, brokers)
				found := 0
				for _, b := range brokers {
					for _, group := range []string{"one", "two", "three", "four", "behind"} {
						s, ok := b.Status().Snapshot().Groups.Get(group)
						if !ok {
							continue
						}
						found++
						if want := map[bool]int64{true: 4, false: 3}[group == "behind"]; s.Lag != want || slices.Contains(s.Findings, "lag-without-members") != (group == "behind") || (s.LagSeconds > 0) != (group == "behind") {
							return fmt.Errorf("%s: %+v", group, s)
						}
					}
				}
				if found != 5 {
					return fmt.Errorf("%d groups", found)
				}
				return nil
			})
		})
	}
}
