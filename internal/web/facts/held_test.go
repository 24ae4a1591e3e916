package facts

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
	"muster/internal/watch/explain"
	"muster/internal/watch/groupview"
)

// Many transactions are open in a partition; what holds it back is that of one producer. How
// long it has been open is known only while it goes on.
func TestAPartitionIsHeldBackByTheTransactionOfItsProducer(t *testing.T) {
	now := time.UnixMilli(1_700_000_060_000)
	tp := func(partition int32) groupview.TopicPartition {
		return groupview.TopicPartition{Topic: "orders", Partition: partition}
	}
	of := func(id string, producer int64, state string) *kmsg.DescribeTransactionsResponseTransactionState {
		return &kmsg.DescribeTransactionsResponseTransactionState{
			TransactionalID: id, ProducerID: producer, State: state, StartTimestamp: now.Add(-time.Minute).UnixMilli(),
			Topics: []kmsg.DescribeTransactionsResponseTransactionStateTopic{{Topic: "orders", Partitions: []int32{0, 1, 2}}},
		}
	}
	held := map[groupview.TopicPartition]explain.HeldBack{
		tp(0): {LastStableOffset: 5, ProducerID: 7}, tp(1): {LastStableOffset: 6, ProducerID: 8}, tp(3): {LastStableOffset: 9, ProducerID: 7},
	}
	for _, t := range []*kmsg.DescribeTransactionsResponseTransactionState{of("seven", 7, "Ongoing"), of("eight", 8, "CompleteAbort"), of("nine", 9, "Ongoing")} {
		nameHolder(held, t, now)
	}
	for at, want := range map[groupview.TopicPartition]explain.HeldBack{
		tp(0): {LastStableOffset: 5, ProducerID: 7, TransactionalID: "seven", Open: time.Minute},
		tp(1): {LastStableOffset: 6, ProducerID: 8, TransactionalID: "eight"},
		tp(3): {LastStableOffset: 9, ProducerID: 7},
	} {
		assert.Equal(t, held[at], want, "%v is held back", at)
	}
	assert.Equal(t, len(held), 3, "held back are %v", held)
}
