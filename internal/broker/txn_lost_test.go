package broker_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"muster/internal/assert"
)

// TestAMarkerWhoseDecisionIsLostEndsNothing decides a transaction over partitions of two
// brokers, holds its markers up, and has Redis come back without the decision. Then the
// markers go on, from the coordinator's memory.
func TestAMarkerWhoseDecisionIsLostEndsNothing(t *testing.T) {
	t.Parallel()
	for name, opts := range versions {
		t.Run(name, func(t *testing.T) {
			p := newPost(true)
			s, brokers := fleet(t, 2, p.through)
			opts := brisk(brokers, opts)
			id := idIn(0)
			c := begin(t, brokers[0], id, opts...)
			older := s.Nodes[0].Snapshot(t)
			must(t, c.EndTransaction(t.Context(), kgo.TryCommit))
			eventually(t, "markers", func(context.Context) error {
				if len(p.seen()) == 0 {
					return errors.New("none was sent")
				}
				return nil
			})
			s.Nodes[0].Restore(t, older)
			p.hold(false)
			wantState(t, brokers[0], id, "CompleteAbort")
			wantCommitted(t, brokers[0], map[string]int{})
			wantStable(t, brokers[0], map[string]int64{id: -1})
			wantNextCommits(t, c, brokers[0], id, opts)
		})
	}
}

// TestATransactionThatLostRecordsIsNotCommitted has Redis lose the last records of a
// transaction that is open, and of another one the first of which are lost too.
func TestATransactionThatLostRecordsIsNotCommitted(t *testing.T) {
	for name, opts := range versions {
		t.Run(name, func(t *testing.T) {
			s, brokers := fleet(t, 2)
			opts := append(brisk(brokers, opts), kgo.RecordPartitioner(kgo.ManualPartitioner()))
			half, all := idIn(0), idIn(1)
			one := client(t, brokers[0], append(opts, kgo.TransactionalID(half))...)
			two := client(t, brokers[0], append(opts, kgo.TransactionalID(all))...)
			part := func(c *kgo.Client, id string, partition int32) {
				t.Helper()
				must(t, c.ProduceSync(t.Context(), &kgo.Record{Topic: "t", Partition: partition, Value: []byte(id)}).FirstErr())
			}
			for _, c := range []*kgo.Client{one, two} {
				pidOf(t, c)
				must(t, c.BeginTransaction())
			}
			part(one, half, 0)
			older := s.Nodes[0].Snapshot(t)
			part(one, half, 1)
			part(two, all, 0)
			part(two, all, 1)
			s.Nodes[0].Restore(t, older)
			for id, c := range map[string]*kgo.Client{half: one, all: two} {
				// It may go on elsewhere: that must not be all that is there of it.
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				_ = c.ProduceSync(ctx, &kgo.Record{Topic: "t", Partition: 2, Value: []byte(id)})
				assert.Error(t, c.EndTransaction(ctx, kgo.TryCommit), "%s is told that its transaction is committed", id)
				cancel()
			}
			wantCommitted(t, brokers[0], map[string]int{})
			for id, c := range map[string]*kgo.Client{half: one, all: two} {
				wantNextCommits(t, c, brokers[0], id, opts)
			}
		})
	}
}

// wantNextCommits takes the place of a producer, and commits a transaction.
func wantNextCommits(t *testing.T, old *kgo.Client, b interface{ Addr() string }, id string, opts []kgo.Opt) {
	t.Helper()
	old.Close()
	eventually(t, "the next transaction of "+id, func(ctx context.Context) error {
		c, err := kgo.NewClient(append(opts, kgo.SeedBrokers(b.Addr()), kgo.TransactionalID(id))...)
		if err != nil {
			return err
		}
		defer c.Close()
		if err := c.BeginTransaction(); err != nil {
			return err
		}
		if err := c.ProduceSync(ctx, &kgo.Record{Topic: "t", Value: []byte("next")}).FirstErr(); err != nil {
			return err
		}
		return c.EndTransaction(ctx, kgo.TryCommit)
	})
}
