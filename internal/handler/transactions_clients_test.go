package handler_test

import (
	"math"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
	"muster/internal/metadata"
)

func TestNobodyButABrokerRaisesTheCoordinatorEpoch(t *testing.T) {
	for _, topic := range []string{"t", metadata.OffsetsTopic} {
		w, pid, epoch := begun(t)
		stranger := markers(pid, epoch, topic, 0)
		stranger.Markers[0].CoordinatorEpoch = math.MaxInt32
		assert.MustEqualSlices(t, w.marked(stranger), []int16{0}, "%s: a stranger's marker", topic)
		broker := markers(pid, epoch+1, topic, 0)
		broker.Markers[0].CoordinatorEpoch = 1
		assert.EqualSlices(t, codesOf(w.byBroker(broker)), []int16{0}, "%s: a broker's marker after it", topic)
		for _, older := range []int32{0, -1, math.MinInt32} { // Below 0 is a broker's word to itself.
			stale := markers(pid, epoch+2, topic, 0)
			stale.Markers[0].CoordinatorEpoch = older
			assert.EqualSlices(t, w.marked(stale), []int16{kerr.TransactionCoordinatorFenced.Code}, "%s: a marker of epoch %d", topic, older)
		}
	}
}

func TestAClientMayAddPartitionsInTheBrokersForm(t *testing.T) {
	w, pid, epoch := begun(t)
	add := func(topic string, ids ...string) *kmsg.AddPartitionsToTxnResponse {
		req := kmsg.NewPtrAddPartitionsToTxnRequest()
		req.Version = 5
		for _, id := range ids {
			req.Transactions = append(req.Transactions, kmsg.AddPartitionsToTxnRequestTransaction{
				TransactionalID: id, ProducerID: pid, ProducerEpoch: epoch,
				Topics: []kmsg.AddPartitionsToTxnRequestTransactionTopic{{Topic: topic, Partitions: []int32{1, 1}}},
			})
		}
		return w.request(req).(*kmsg.AddPartitionsToTxnResponse)
	}
	code := func(got *kmsg.AddPartitionsToTxnResponse) int16 {
		if got.ErrorCode != 0 || len(got.Transactions) != 1 || got.Transactions[0].TransactionalID != "x" || len(got.Transactions[0].Topics[0].Partitions) != 1 {
			t.Fatalf("the answer is %+v", got)
		}
		return got.Transactions[0].Topics[0].Partitions[0].ErrorCode
	}
	assert.Equal(t, code(add("t", "x")), 0, "a partition of its own")
	assert.Equal(t, code(add(metadata.OffsetsTopic, "x")), kerr.TopicAuthorizationFailed.Code, "an internal topic")
	if got := add("t", "x", "y"); got.ErrorCode != kerr.ClusterAuthorizationFailed.Code {
		t.Errorf("two transactions: %+v", got)
	}
}
