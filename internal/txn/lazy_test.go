package txn

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/machine"
)

// Nobody waits for the record that a transaction is complete, and everybody for the
// others. What waited for the end of the transaction has its record appended with it.
func TestOnlyTheRecordOfACompleteTransactionIsLazy(t *testing.T) {
	for _, waits := range []bool{false, true} {
		s := NewShard(DefaultConfig())
		s.Replay(machine.Stored{Records: []machine.StoredRecord{{Record: &Record{TransactionalID: "x", Value: &Value{
			Producer: pair{1, 5}, Timeout: 1000, State: Ongoing, Topics: []topic{{"t", []int32{0}}}, Previous: none, Next: noPair, Last: none,
		}}}}})
		step := func(e machine.Event) machine.Effects {
			return s.Step(machine.Input{Now: time.Unix(100, 0), Image: imageOf("t=1"), Event: e})
		}
		end := kmsg.NewPtrEndTxnRequest()
		end.Version, end.TransactionalID, end.ProducerID, end.ProducerEpoch, end.Commit = endTV2, "x", 1, 5, true
		fx := step(machine.Request{ID: 7, Msg: end})
		if len(fx.Batches) != 1 || fx.Batches[0].Lazy || len(fx.Sends) != 1 {
			t.Fatalf("the end: %+v", fx)
		}
		send := fx.Sends[0]
		if waits {
			add := kmsg.NewPtrAddPartitionsToTxnRequest()
			add.Version, add.TransactionalID, add.ProducerID, add.ProducerEpoch = 3, "x", 1, 6
			add.Topics = []kmsg.AddPartitionsToTxnRequestTopic{{Topic: "t", Partitions: []int32{0}}}
			if fx = step(machine.Request{ID: 8, Msg: add}); len(fx.Batches) > 0 {
				t.Fatalf("the next transaction begins before the end of this: %+v", fx)
			}
		}
		resp := kmsg.NewPtrWriteTxnMarkersResponse()
		marked := kmsg.WriteTxnMarkersResponseMarkerTopic{Topic: "t", Partitions: []kmsg.WriteTxnMarkersResponseMarkerTopicPartition{{}}}
		resp.Markers = []kmsg.WriteTxnMarkersResponseMarker{{ProducerID: 1, Topics: []kmsg.WriteTxnMarkersResponseMarkerTopic{marked}}}
		fx = step(machine.Sent{ID: send.ID, Msg: resp})
		if len(fx.Batches) != 1 || fx.Batches[0].Lazy == waits || fx.Batches[0].Records[0].(*Record).Value.State != CompleteCommit {
			t.Errorf("somebody waits: %v; all markers are written: %+v", waits, fx)
		}
	}
}
