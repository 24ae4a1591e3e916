package broker_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kversion"

	"muster/internal/assert"
	"muster/internal/broker"
	"muster/internal/metadata"
)

// beginAll begins a transaction in each shard.
func beginAll(t *testing.T, b *broker.Broker) (alive []*kgo.Client) {
	t.Helper()
	for shard := range int32(stateShards) {
		alive = append(alive, begin(t, b, idIn(shard)))
	}
	return alive
}

func commitAll(t *testing.T, alive []*kgo.Client) {
	t.Helper()
	for i, c := range alive {
		assert.NoError(t, c.EndTransaction(t.Context(), kgo.TryCommit), "transaction %d cannot be committed", i)
	}
}

// A coordinator that does not answer may know any of them.
func TestAFleetSparesWhatACoordinatorThatDoesNotAnswerMayKnow(t *testing.T) {
	_, brokers := fleet(t, 2)
	alive := beginAll(t, brokers[0])
	agree(t, brokers)
	for i, b := range brokers {
		other := brokers[1-i].NodeID()
		asked := 0
		undo := b.BetweenAsks(func(node int32) error {
			asked++
			if node == other {
				return errors.New("no answer")
			}
			return nil
		})
		for range 3 {
			if err := b.ResolveOnce(t.Context(), time.Now().Add(time.Hour)); err == nil {
				t.Errorf("broker %d goes by the word of half of the coordinators", b.NodeID())
			}
		}
		undo()
		if asked == 0 {
			t.Errorf("broker %d asks nobody", b.NodeID())
		}
	}
	wantOpen(t, "after three looks", brokers, true, alive...)
	commitAll(t, alive)
}

// A third broker comes while coordinators are asked, and takes some of them over: those
// that are asked know nothing of theirs any more.
func TestAFleetSparesWhatMovesToAnotherCoordinatorMeanwhile(t *testing.T) {
	s, brokers := fleet(t, 2)
	alive := beginAll(t, brokers[0])
	agree(t, brokers)
	before := slices.Clone(brokers[0].Image().Topic(metadata.TransactionsTopic).Partitions)
	joined := false
	undo := brokers[0].BetweenAsks(func(int32) error {
		if joined {
			return nil
		}
		joined = true
		brokers = append(brokers, join(t, s))
		eventually(t, "the third to lead", func(context.Context) error {
			third := brokers[2].NodeID()
			for _, p := range brokers[0].Image().Topic(metadata.TransactionsTopic).Partitions {
				if p.Leader == third {
					return nil
				}
			}
			return errors.New("it leads nothing")
		})
		return nil
	})
	err := brokers[0].ResolveOnce(t.Context(), time.Now().Add(time.Hour))
	undo()
	if err == nil || slices.Equal(before, brokers[0].Image().Topic(metadata.TransactionsTopic).Partitions) {
		t.Errorf("coordinators have moved meanwhile: %v", err)
	}
	agree(t, brokers)
	for range 3 {
		resolveIfKnown(t, brokers)
	}
	wantOpen(t, "after the move", brokers, true, alive...)
	// The next one is lost between two looks.
	must(t, brokers[2].Close())
	rest := brokers[:2]
	eventually(t, "the others to lead", func(context.Context) error {
		for _, b := range rest {
			for _, p := range b.Image().Topic(metadata.TransactionsTopic).Partitions {
				if p.Leader == brokers[2].NodeID() {
					return errors.New("they do not")
				}
			}
		}
		return nil
	})
	for range 3 {
		resolveIfKnown(t, rest)
	}
	eventually(t, "partitions to be open", func(context.Context) error {
		for _, c := range alive {
			if records, offsets := openEverywhere(rest, pidOf(t, c)); records != 3 || offsets != 1 {
				return errors.New("some are not")
			}
		}
		return nil
	})
	commitAll(t, alive)
}

// resolveIfKnown looks until all coordinators have answered: some load first.
func resolveIfKnown(t *testing.T, brokers []*broker.Broker) {
	t.Helper()
	for _, b := range brokers {
		eventually(t, "answers", func(ctx context.Context) error { return b.ResolveOnce(ctx, time.Now().Add(time.Hour)) })
	}
}

// What was found may end, and the producer begin another, before it is aborted. Below
// version 2 of transactions that one has the same epoch.
func TestAFleetSparesTheNextTransactionOfAProducer(t *testing.T) {
	_, brokers := fleet(t, 2)
	c := begin(t, brokers[0], idIn(0), kgo.MaxVersions(kversion.V3_5_0()))
	_, epoch, _ := c.ProducerID(t.Context())
	var aborts []func(context.Context) error
	for _, b := range brokers {
		aborts = append(aborts, b.Overdue(time.Now().Add(time.Hour)))
	}
	must(t, c.EndTransaction(t.Context(), kgo.TryCommit))
	write(t, c, idIn(0))
	if _, now, _ := c.ProducerID(t.Context()); now != epoch {
		t.Fatalf("the epoch was %d and is %d", epoch, now)
	}
	for _, abort := range aborts {
		assert.NoError(t, abort(t.Context()))
	}
	wantOpen(t, "the next one", brokers, true, c)
	commitAll(t, []*kgo.Client{c})
	wantRead(t, brokers[1], map[string]int{idIn(0): 6})
}
