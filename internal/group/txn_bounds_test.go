package group

import (
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/kind"
	"muster/internal/group/schema"
	"muster/internal/machine"
	"muster/internal/metadata"
)

// txnInput is a TxnOffsetCommit of a producer, with so much metadata.
func txnInput(id machine.RequestID, producer int64, size int) machine.Input {
	req := kmsg.NewPtrTxnOffsetCommitRequest()
	req.Version, req.Group, req.TransactionalID, req.ProducerID, req.Generation = 3, "g", "x", producer, -1
	text := strings.Repeat("x", size)
	p := kmsg.NewTxnOffsetCommitRequestTopicPartition()
	p.Metadata = &text
	req.Topics = []kmsg.TxnOffsetCommitRequestTopic{{Topic: "t", Partitions: []kmsg.TxnOffsetCommitRequestTopicPartition{p}}}
	return machine.Input{
		Now: time.Unix(1_700_000_000, 0), Image: withTransactions(imageOf(map[string]byte{"t": 1})),
		Event: machine.Request{ID: id, Msg: req},
	}
}

func txnCode(t *testing.T, fx machine.Effects) int16 {
	t.Helper()
	if len(fx.Replies) != 1 {
		t.Fatalf("%d answers", len(fx.Replies))
	}
	return fx.Replies[0].Msg.(*kmsg.TxnOffsetCommitResponse).Topics[0].Partitions[0].ErrorCode
}

// Requests that wait for someone else must not fill the memory.
func TestTxnCommitsThatWaitAreBounded(t *testing.T) {
	s := NewShard(kind.DefaultConfig())
	parked := 0
	for id := machine.RequestID(1); ; id++ {
		fx := s.Step(txnInput(id, 1, 1<<20))
		if len(fx.Sends) == 0 {
			if code := txnCode(t, fx); code != kerr.CoordinatorLoadInProgress.Code {
				t.Errorf("what is too much is answered with %d", code)
			}
			break
		}
		if parked++; parked > 100 {
			t.Fatal("a hundred megabytes are parked")
		}
	}
	if parked < 2 {
		t.Errorf("only %d are parked", parked)
	}
	s.Step(machine.Input{Now: time.Unix(1_700_000_000, 0), Event: machine.Sent{ID: 1}})
	if fx := s.Step(txnInput(1000, 1, 1<<20)); len(fx.Sends) != 1 {
		t.Error("there is room again, and nothing is parked")
	}
}

func TestTxnCommitWithoutALeaderToAskIsRefused(t *testing.T) {
	in := txnInput(1, 1, 0)
	edit := in.Image.Edit()
	edit.PutTopic(metadata.Topic{Name: metadata.TransactionsTopic, Partitions: []metadata.Partition{{Leader: metadata.NoBroker}}})
	in.Image = edit.Image()
	if code := txnCode(t, NewShard(kind.DefaultConfig()).Step(in)); code != kerr.CoordinatorNotAvailable.Code {
		t.Errorf("answered with %d", code)
	}
}

func TestTxnFailuresOfTheCoordinatorAreForEveryPartition(t *testing.T) {
	req := txnInput(1, 1, 0).Event.(machine.Request).Msg.(*kmsg.TxnOffsetCommitRequest)
	for version, want := range map[int16]*kerr.Error{1: kerr.CoordinatorNotAvailable, 2: kerr.CoordinatorLoadInProgress} {
		req.Version = version
		resp := failed(req, kerr.CoordinatorLoadInProgress).(*kmsg.TxnOffsetCommitResponse)
		if got := resp.Topics[0].Partitions[0].ErrorCode; got != want.Code || resp.Topics[0].Topic != "t" {
			t.Errorf("version %d is told %d, should be %d", version, got, want.Code)
		}
	}
}

// ended replays the marker of a producer.
func (s *Shard) ended(id int64) {
	s.Replay(machine.Stored{Producer: &machine.Producer{ID: id, Transactional: true}, Control: &machine.Control{}})
}

func TestProducersWithoutATransactionAreForgotten(t *testing.T) {
	s := NewShard(kind.DefaultConfig())
	r := &schema.OffsetRecord{Group: "g", Topic: "t", Value: &schema.Offset{LeaderEpoch: -1, ExpireTimestamp: -1}}
	s.Replay(machine.Stored{Producer: &machine.Producer{ID: 7, Transactional: true}, Records: []machine.StoredRecord{{Record: r}}})
	for id := int64(100); id < 100+3*maxIdleProducers; id++ {
		s.ended(id)
		if id%100 == 0 {
			s.ended(8)
		}
		if len(s.txns.producers) > maxIdleProducers {
			t.Fatalf("%d producers are known", len(s.txns.producers))
		}
	}
	for _, id := range []int64{7, 8, 100 + 3*maxIdleProducers - 1} {
		if s.txns.producers[id] == nil {
			t.Errorf("producer %d is forgotten, though it is open, or was heard of lately", id)
		}
	}
	if err := s.CheckInvariants(); err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1_700_000_000, 0)
	s.Step(machine.Input{Now: now, Event: machine.Loaded{}})
	sweep := func(after time.Duration) int {
		s.Step(machine.Input{Now: now.Add(after), Event: machine.TimerFired{Key: machine.TimerKey{Kind: kind.TimerSweep}}})
		return len(s.txns.producers)
	}
	if n := sweep(producerRetention - time.Minute); n < 2 {
		t.Error("all are forgotten before their time")
	}
	if n := sweep(producerRetention); n != 1 || s.txns.producers[7] == nil {
		t.Errorf("after a day %d are known, should be the one that is open", n)
	}
}

// A transaction's offsets are appended as whole batches, which must not be too
// large for the log.
func TestTxnCommitFitsIntoBatches(t *testing.T) {
	s, in := NewShard(kind.DefaultConfig()), txnInput(1, 1, 10)
	req := in.Event.(machine.Request).Msg.(*kmsg.TxnOffsetCommitRequest)
	for i := range int32(9) {
		p := req.Topics[0].Partitions[0]
		p.Partition = i + 1
		req.Topics[0].Partitions = append(req.Topics[0].Partitions, p)
	}
	in.MaxBatch = 500
	q := s.Step(in).Sends[0]
	in.Event = machine.Sent{ID: q.ID, Msg: answerTo(q.Msg.(*kmsg.AddPartitionsToTxnRequest), 0, 1)}
	records, batches := 0, s.Step(in).Batches
	for _, b := range batches {
		if b.Size() > in.MaxBatch || b.Producer == nil || !b.Producer.Transactional {
			t.Errorf("a batch of %d bytes, of producer %+v", b.Size(), b.Producer)
		}
		records += len(b.Records)
	}
	if records != 10 || len(batches) != 4 {
		t.Errorf("%d records in %d batches, should be 10, three to a batch", records, len(batches))
	}
}
