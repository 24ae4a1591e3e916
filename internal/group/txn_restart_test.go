package group

import (
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/kind"
	"muster/internal/machine"
	"muster/internal/metadata"
)

// What a transaction coordinator decided or answered in another run of the store's server
// is of no use: the store may have lost it since.
func TestWordsOfAnotherRunAreRefused(t *testing.T) {
	for run, want := range map[machine.StoreRun]struct {
		marker, commit int16
	}{
		"now": {}, "": {}, "before": {kerr.TransactionCoordinatorFenced.Code, kerr.CoordinatorNotAvailable.Code},
	} {
		t.Run(string(run), func(t *testing.T) {
			s, in := NewShard(kind.DefaultConfig()), txnInput(1, 1, 10)
			commit := in.Event
			in.Event = machine.Loaded{Run: machine.Run{ID: "now"}}
			s.Step(in)
			in.Event = commit
			q := s.Step(in).Sends[0]
			answer := answerTo(q.Msg.(*kmsg.AddPartitionsToTxnRequest), 0, 1).(*kmsg.AddPartitionsToTxnResponse)
			run.Set(&answer.Transactions[0].Topics[0].Partitions[0].UnknownTags)
			in.Event = machine.Sent{ID: q.ID, Msg: answer}
			fx := s.Step(in)
			got := fx.Replies[0].Msg.(*kmsg.TxnOffsetCommitResponse).Topics[0].Partitions[0].ErrorCode
			if got != want.commit || (len(fx.Batches) > 0) != (want.commit == 0) {
				t.Errorf("a commit is answered by %d, %d batches", got, len(fx.Batches))
			}
			m := kmsg.NewWriteTxnMarkersRequestMarker()
			m.ProducerID, m.Committed = 1, true
			run.Set(&m.UnknownTags)
			topic := kmsg.NewWriteTxnMarkersRequestMarkerTopic()
			topic.Topic, topic.Partitions = "__consumer_offsets", []int32{0}
			m.Topics = []kmsg.WriteTxnMarkersRequestMarkerTopic{topic}
			req := kmsg.NewPtrWriteTxnMarkersRequest()
			req.Markers = []kmsg.WriteTxnMarkersRequestMarker{m}
			in.Now = in.Now.Add(time.Second)
			in.Event = machine.Request{ID: 99, Msg: req}
			fx = s.Step(in)
			got = fx.Replies[0].Msg.(*kmsg.WriteTxnMarkersResponse).Markers[0].Topics[0].Partitions[0].ErrorCode
			if got != want.marker || (len(fx.Batches) > 0) != (want.marker == 0) {
				t.Errorf("a marker is answered by %d, %d batches", got, len(fx.Batches))
			}
		})
	}
}

// An answer of a coordinator whose log has a new leader epoch since is of no use: the log may
// have lost the transaction, and then nothing would end what begins here.
func TestTheAnswerOfACoordinatorThatWasReplacedIsRefused(t *testing.T) {
	for epoch, want := range map[int32]int16{0: 0, 1: kerr.CoordinatorNotAvailable.Code} {
		s, in := NewShard(DefaultConfig()), txnInput(1, 1, 10)
		q := s.Step(in).Sends[0]
		edit := in.Image.Edit()
		topic := *in.Image.Topic(metadata.TransactionsTopic)
		topic.Partitions = slices.Clone(topic.Partitions)
		for i := range topic.Partitions {
			topic.Partitions[i].LeaderEpoch = epoch
		}
		edit.PutTopic(topic)
		in.Image = edit.Image()
		in.Event = machine.Sent{ID: q.ID, Msg: answerTo(q.Msg.(*kmsg.AddPartitionsToTxnRequest), 0, 1)}
		fx := s.Step(in)
		if got := txnCode(t, fx); got != want || (len(fx.Batches) > 0) != (want == 0) {
			t.Errorf("under leader epoch %d a commit is answered by %d, %d batches", epoch, got, len(fx.Batches))
		}
	}
}
