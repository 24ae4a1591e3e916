package broker_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
	"muster/internal/broker"
	"muster/internal/journal"
	"muster/internal/machine"
	"muster/internal/metadata"
	"muster/internal/record"
)

// leaveOrphan has a partition hold a transaction that no coordinator knows, as
// when the store loses the end of the coordinator's log.
func leaveOrphan(t *testing.T, b *broker.Broker, topic string, pid int64) {
	t.Helper()
	from := record.PlainTemplate()
	from.ProducerID, from.ProducerEpoch, from.BaseSequence, from.Transactional = pid, 3, -1, true
	batch, err := record.Build(from, []record.Record{{Key: []byte("k"), Value: []byte("lost")}})
	must(t, err)
	done := make(chan error, 1)
	b.Partition(topic, 0).AppendOwn(t.Context(), batch, func(_ int64, err error) { done <- err })
	must(t, <-done)
}

// openIn returns the producers of the transactions that are open in a partition.
func openIn(b *broker.Broker, topic string) (ids []int64) {
	for _, o := range b.Partition(topic, 0).OpenTxns() {
		ids = append(ids, o.ProducerID)
	}
	return ids
}

func TestATransactionThatNoCoordinatorKnowsIsAbortedAndOthersAreSpared(t *testing.T) {
	b := start(t, map[string]string{"transaction.state.log.num.partitions": "3", "offsets.topic.num.partitions": "1"})
	cl := client(t, b, kgo.TransactionalID("x"), kgo.DefaultProduceTopic("t"))
	must(t, cl.BeginTransaction())
	must(t, cl.ProduceSync(t.Context(), &kgo.Record{Value: []byte("a")}).FirstErr())
	live := openIn(b, "t")
	leaveOrphan(t, b, "t", 77)
	later := time.Now().Add(time.Hour)

	if err := b.ResolveOnce(t.Context(), time.Now().Add(19*time.Minute)); err != nil || len(openIn(b, "t")) != 2 {
		t.Errorf("before its time: %v, open are %v", err, openIn(b, "t"))
	}
	undo := b.Deaf()
	if err := b.ResolveOnce(t.Context(), later); err == nil || len(openIn(b, "t")) != 2 {
		t.Errorf("while a coordinator cannot be asked: %v, open are %v", err, openIn(b, "t"))
	}
	undo()
	if err := b.ResolveOnce(t.Context(), later); err != nil || len(openIn(b, "t")) != 2 {
		t.Errorf("when it is found for the first time: %v, open are %v", err, openIn(b, "t"))
	}
	must(t, b.ResolveOnce(t.Context(), later))
	if got := openIn(b, "t"); len(live) != 1 || len(got) != 1 || got[0] != live[0] {
		t.Errorf("open are %v, want %v", got, live)
	}
	assert.NoError(t, cl.EndTransaction(t.Context(), kgo.TryCommit))
	e := awaitEntry(t, b, "77")
	if e.Kind != journal.TxnResolved || e.Was != (journal.Producer{ID: 77, Epoch: 3}) || e.Broker == nil || e.Open < 30*time.Minute || !slices.Equal(e.Partitions, []string{"t-0"}) {
		t.Errorf("the journal tells %+v", e)
	}
}

// awaitEntry waits until the journal of transactions has an entry of a key.
func awaitEntry(t *testing.T, b *broker.Broker, key string) (e journal.Txn) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	reader := client(t, b, kgo.ConsumeTopics(metadata.TransactionJournalTopic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	for found := false; !found; {
		fs := reader.PollFetches(ctx)
		assert.Must(t, ctx.Err(), "nothing of %q is in the journal", key)
		fs.EachRecord(func(r *kgo.Record) {
			if string(r.Key) == key && !found {
				found = true
				assert.NoError(t, json.Unmarshal(r.Value, &e), "%s", r.Value)
			}
		})
	}
	return e
}

func TestATransactionThatTimesOutIsInTheJournal(t *testing.T) {
	b := start(t, map[string]string{"transaction.abort.timed.out.transaction.cleanup.interval.ms": "10"})
	cl := client(t, b, kgo.TransactionalID("slow"), kgo.ClientID("sleeper"), kgo.DefaultProduceTopic("t"), kgo.TransactionTimeout(50*time.Millisecond))
	must(t, cl.BeginTransaction())
	cl.ProduceSync(t.Context(), &kgo.Record{Value: []byte("a")}) // On a slow machine its time is up already.
	e := awaitEntry(t, b, "slow")
	if e.Kind != journal.TxnTimedOut || e.ID != "slow" || e.Holder == nil || e.Holder.ClientID != "sleeper" || e.Open < 50*time.Millisecond || e.PartitionN != 1 || e.Now == nil || e.Now.Epoch != e.Was.Epoch+1 {
		t.Errorf("the journal tells %+v", e)
	}
}

func TestOffsetsThatNoCoordinatorKnowsOfAreAbortedByTheGroupCoordinator(t *testing.T) {
	b := start(t, map[string]string{"transaction.state.log.num.partitions": "1", "offsets.topic.num.partitions": "1"})
	find := kmsg.NewPtrFindCoordinatorRequest() // Which creates the topic of offsets.
	find.CoordinatorKey = "g"
	if _, err := find.RequestWith(t.Context(), client(t, b)); err != nil {
		t.Fatal(err)
	}
	// The partition forgets who ended the producer's last transaction, the group
	// coordinator does not.
	last := kmsg.NewPtrWriteTxnMarkersRequest()
	last.Version = 1
	last.Markers = []kmsg.WriteTxnMarkersRequestMarker{{
		ProducerID: 77, ProducerEpoch: 2, CoordinatorEpoch: 5,
		Topics: []kmsg.WriteTxnMarkersRequestMarkerTopic{{Topic: metadata.OffsetsTopic, Partitions: []int32{0}}},
	}}
	if _, err := b.Ask(t.Context(), machine.Self, last); err != nil {
		t.Fatal(err)
	}
	part := b.Partition(metadata.OffsetsTopic, 0)
	assert.MustEqual(t, part.CoordinatorEpoch(77), 5, "the last transaction was ended under the epoch")
	if err := part.Retain(t.Context(), time.Now().Add(48*time.Hour)); err != nil || part.CoordinatorEpoch(77) != -1 {
		t.Fatalf("the partition still knows the epoch %d, %v", part.CoordinatorEpoch(77), err)
	}
	leaveOrphan(t, b, metadata.OffsetsTopic, 77)
	for range 2 {
		must(t, b.ResolveOnce(t.Context(), time.Now().Add(time.Hour)))
	}
	if got := openIn(b, metadata.OffsetsTopic); len(got) != 0 {
		t.Errorf("open are %v", got)
	}
	assert.Equal(t, part.CoordinatorEpoch(77), 5, "it was aborted under the epoch")
}

func TestMoreTransactionsThanOneQuestionHoldsAreResolved(t *testing.T) {
	b := start(t, map[string]string{"transaction.state.log.num.partitions": "3"})
	cl := client(t, b, kgo.TransactionalID("x"), kgo.DefaultProduceTopic("t"))
	must(t, cl.BeginTransaction())
	must(t, cl.ProduceSync(t.Context(), &kgo.Record{Value: []byte("a")}).FirstErr())
	for pid := range int64(1001) {
		leaveOrphan(t, b, "t", pid)
	}
	for range 2 {
		must(t, b.ResolveOnce(t.Context(), time.Now().Add(time.Hour)))
	}
	assert.Equal(t, len(openIn(b, "t")), 1, "open")
}
