package broker_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"muster/internal/assert"
	"muster/internal/broker"
	"muster/internal/journal"
	"muster/internal/metadata"
)

// versions are clients of both versions of transactions.
var versions = map[string][]kgo.Opt{"TV1": {kgo.MaxVersions(kversion.V3_5_0())}, "TV2": nil}

// brisk has clients know all brokers, and look soon for others.
func brisk(brokers []*broker.Broker, opts []kgo.Opt) []kgo.Opt {
	var addrs []string
	for _, b := range brokers {
		addrs = append(addrs, b.Addr())
	}
	return append([]kgo.Opt{
		kgo.SeedBrokers(addrs...), kgo.MetadataMinAge(20 * time.Millisecond), kgo.MetadataMaxAge(200 * time.Millisecond),
		kgo.RetryBackoffFn(func(int) time.Duration { return 20 * time.Millisecond }),
		kgo.UnknownTopicRetries(-1), // With such a backoff a broker that hears of the topic a moment later would be given up.
	}, opts...)
}

// twoIn returns two transactional ids of a shard.
func twoIn(shard int32) (one, other string) {
	one = idIn(shard)
	for i := 0; ; i++ {
		if other = fmt.Sprint("xx", i); journal.PartitionFor(other, stateShards) == shard {
			return one, other
		}
	}
}

// findAgain has a client find its coordinators after a loss, by offsets that it commits
// until that is done: it tries neither to produce nor to end a transaction for as long.
func findAgain(t *testing.T, c *kgo.Client, id string) {
	t.Helper()
	eventually(t, "commit offsets of "+id, func(ctx context.Context) error { return commitIn(ctx, c, id) })
}

// TestCoordinatorMovesInPrepare has a coordinator go that has decided how two transactions
// end, and has told no partition. The next one tells them, and says the same.
func TestCoordinatorMovesInPrepare(t *testing.T) {
	t.Parallel()
	for name, opts := range versions {
		t.Run(name, func(t *testing.T) { coordinatorMovesInPrepare(t, opts) })
	}
}

func coordinatorMovesInPrepare(t *testing.T, opts []kgo.Opt) {
	p := newPost(true)
	_, brokers := fleet(t, 2, p.through)
	opts = brisk(brokers, opts)
	yes, no := twoIn(0)
	committed, aborted := begin(t, brokers[0], yes, opts...), begin(t, brokers[1], no, opts...)
	pids := []int64{pidOf(t, committed), pidOf(t, aborted)}
	must(t, committed.EndTransaction(t.Context(), kgo.TryCommit))
	must(t, aborted.EndTransaction(t.Context(), kgo.TryAbort))
	wantState(t, brokers[0], yes, "PrepareCommit")
	wantState(t, brokers[0], no, "PrepareAbort")
	for _, pid := range pids {
		if records, offsets := openEverywhere(brokers, pid); records != 3 || offsets != 1 {
			t.Errorf("in Prepare %d is open in %d partitions and %d of offsets", pid, records, offsets)
		}
	}
	coordinator, others := leaderOf(t, brokers, metadata.TransactionsTopic, 0)
	lose(t, coordinator, others)
	p.hold(false)
	wantState(t, others[0], yes, "CompleteCommit")
	wantState(t, others[0], no, "CompleteAbort")
	wantCommitted(t, others[0], map[string]int{yes: 3})
	wantStable(t, others[0], map[string]int64{yes: 1, no: -1})
}

// TestLeaderMovesWithOpen has the leader of a partition go while two transactions have
// records there. The next leader knows that they are open, their producers go on, and
// each ends as it was told to.
func TestLeaderMovesWithOpen(t *testing.T) {
	t.Parallel()
	for name, opts := range versions {
		t.Run(name, func(t *testing.T) { leaderMovesWithOpen(t, opts) })
	}
}

func leaderMovesWithOpen(t *testing.T, opts []kgo.Opt) {
	_, brokers := fleet(t, 2)
	opts = brisk(brokers, opts)
	yes, no := idIn(0), idIn(1)
	aborted, committed := begin(t, brokers[0], no, opts...), begin(t, brokers[1], yes, opts...)
	end, stable, err := ends(t.Context(), client(t, brokers[0]))
	must(t, err)
	leader, others := leaderOf(t, brokers, "t", 0)
	lose(t, leader, others)
	c := client(t, others[0])
	eventually(t, "the new leaders to know what is open", func(ctx context.Context) error {
		e, s, err := ends(ctx, c)
		assert.False(t, err == nil && (!maps.Equal(e, end) || !maps.Equal(s, stable)), "ends were %v, decided up to %v; now %v, %v", end, stable, e, s)
		return err
	})
	wantOpen(t, "after the move", others, true, aborted, committed)
	findAgain(t, committed, yes)
	findAgain(t, aborted, no)
	for _, producer := range []*kgo.Client{committed, aborted} {
		for i := range int32(3) {
			r := &kgo.Record{Topic: "t", Partition: i, Value: []byte("x later")}
			if producer == committed {
				r.Value = []byte(yes)
			}
			must(t, producer.ProduceSync(t.Context(), r).FirstErr())
		}
	}
	must(t, aborted.EndTransaction(t.Context(), kgo.TryAbort))
	commitAll(t, []*kgo.Client{committed})
	wantCommitted(t, others[0], map[string]int{yes: 6})
	wantStable(t, others[0], map[string]int64{yes: 1, no: -1})
}

// TestMarkerDuplicatedDelayed sends the markers of a transaction again: while the
// next one of the producer is open, when that has ended otherwise, and when another
// coordinator has taken over and a third one is open. They change nothing.
func TestMarkerDuplicatedDelayed(t *testing.T) {
	t.Parallel()
	for name, opts := range versions {
		t.Run(name, func(t *testing.T) { markerDuplicatedDelayed(t, opts) })
	}
}

func markerDuplicatedDelayed(t *testing.T, opts []kgo.Opt) {
	p := newPost(false)
	_, brokers := fleet(t, 2, p.through)
	opts = brisk(brokers, opts)
	id := idIn(0)
	c := begin(t, brokers[0], id, opts...)
	commitAll(t, []*kgo.Client{c})
	wantState(t, brokers[0], id, "CompleteCommit")
	commits := p.seen()

	write(t, c, id)
	resend(t, brokers, commits)
	wantOpen(t, "after markers of the one before", brokers, true, c)
	must(t, c.EndTransaction(t.Context(), kgo.TryAbort))
	wantState(t, brokers[0], id, "CompleteAbort")
	wantCommitted(t, brokers[0], map[string]int{id: 3})
	was, _, err := ends(t.Context(), c)
	must(t, err)
	all := p.seen()
	resend(t, brokers, all[len(commits):])
	if now, _, err := ends(t.Context(), c); err != nil || !maps.Equal(now, was) {
		t.Errorf("repeated markers are written: ends were %v, are %v, %v", was, now, err)
	}
	resend(t, brokers, commits) // Which may be written, and mean nothing.
	wantCommitted(t, brokers[0], map[string]int{id: 3})

	coordinator, others := leaderOf(t, brokers, metadata.TransactionsTopic, 0)
	lose(t, coordinator, others)
	wantState(t, others[0], id, "CompleteAbort")
	findAgain(t, c, id)
	write(t, c, id)
	resend(t, others, all)
	wantOpen(t, "after markers of the coordinator before", others, true, c)
	commitAll(t, []*kgo.Client{c})
	wantState(t, others[0], id, "CompleteCommit")
	resend(t, others, all)
	wantCommitted(t, others[0], map[string]int{id: 6})
	wantStable(t, others[0], map[string]int64{id: 1})
}

// TestMarkersOfThePastAfterMoves sends the markers of a coordinator again that is gone, to
// leaders that have only the log to know by that they are late: their successor has ended
// another transaction since, or the producer has a higher epoch.
func TestMarkersOfThePastAfterMoves(t *testing.T) {
	t.Parallel()
	for name, opts := range versions {
		t.Run(name, func(t *testing.T) { markersOfThePast(t, opts) })
	}
}

func markersOfThePast(t *testing.T, opts []kgo.Opt) {
	p := newPost(false)
	_, brokers := fleet(t, 3, p.through)
	opts = brisk(brokers, opts)
	one, other := twoIn(0)
	same := begin(t, brokers[0], one, opts...)
	commitAll(t, []*kgo.Client{same, begin(t, brokers[0], other, opts...)})
	wantState(t, brokers[0], one, "CompleteCommit")
	wantState(t, brokers[0], other, "CompleteCommit")
	past := p.seen()
	coordinator, others := leaderOf(t, brokers, metadata.TransactionsTopic, 0)
	lose(t, coordinator, others)
	findAgain(t, same, one)
	write(t, same, one)
	commitAll(t, []*kgo.Client{same})
	wantState(t, others[0], one, "CompleteCommit")

	write(t, same, one)
	higher := begin(t, others[0], other, opts...)
	// Each leads some of t, and this one the offsets of a group as well.
	leader, rest := leaderOf(t, others, metadata.OffsetsTopic, journal.PartitionFor(one, 3))
	lose(t, leader, rest)
	resend(t, rest, past)
	wantOpen(t, "after markers of the past", rest, true, same, higher)
	findAgain(t, same, one)
	findAgain(t, higher, other)
	commitAll(t, []*kgo.Client{same, higher})
	wantCommitted(t, rest[0], map[string]int{one: 9, other: 6})
	wantStable(t, rest[0], map[string]int64{one: 1, other: 1})
}

// resend has the leaders of partitions handle markers twice, as if they came from a
// broker, and waits for the answers.
func resend(t *testing.T, brokers []*broker.Broker, markers []*kmsg.WriteTxnMarkersRequest) {
	t.Helper()
	assert.MustTrue(t, len(markers) != 0, "no markers were sent")
	for range 2 {
		for _, m := range markers {
			for _, one := range apart(copyOf(m)) {
				eventually(t, "an answer to a marker", func(ctx context.Context) error { return resendOne(ctx, t, brokers, one) })
			}
		}
	}
}

func resendOne(ctx context.Context, t *testing.T, brokers []*broker.Broker, m *kmsg.WriteTxnMarkersRequest) error {
	topic := m.Markers[0].Topics[0]
	leader, others := leaderOf(t, brokers, topic.Topic, topic.Partitions[0])
	from := append(others, leader)[0]
	resp, err := from.Ask(ctx, leader.NodeID(), copyOf(m))
	if err != nil {
		return err
	}
	err = kerr.ErrorForCode(resp.(*kmsg.WriteTxnMarkersResponse).Markers[0].Topics[0].Partitions[0].ErrorCode)
	if errors.Is(err, kerr.InvalidProducerEpoch) || errors.Is(err, kerr.TransactionCoordinatorFenced) {
		return nil // It is refused for good.
	}
	return err
}
