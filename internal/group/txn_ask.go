package group

import (
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/kind"
	"muster/internal/journal"
	"muster/internal/machine"
	"muster/internal/metadata"
)

// Before a transaction opens here, its coordinator is asked whether it is under
// way (KIP-890). Meanwhile the request is parked. A marker of the same producer
// that is written before the answer comes makes the answer worthless if it may be
// about the transaction that the marker ended: that is the guard which Kafka calls
// a verification guard.

// askPatience is how long an answer is waited for, and maxParked how many bytes
// of requests do at the same time.
const (
	askPatience = 10 * time.Second
	maxParked   = 8 << 20
)

// parked is requests that wait for a transaction coordinator.
type parked struct {
	byID       map[uint64]*question
	byProducer map[int64][]*question
	bytes      int
	seq        uint64 // of the timer, 0 if none
}

func newParked() parked {
	return parked{byID: map[uint64]*question{}, byProducer: map[int64][]*question{}}
}

// question is a TxnOffsetCommit whose coordinator is asked.
type question struct {
	id    uint64
	req   machine.Request
	msg   *kmsg.TxnOffsetCommitRequest
	bytes int
	until time.Time
	epoch int32 // leader epoch of the coordinator's partition when it was asked
	ended bool  // a transaction was, meanwhile
}

func (k *parked) add(q *question) {
	k.byID[q.id] = q
	k.byProducer[q.msg.ProducerID] = append(k.byProducer[q.msg.ProducerID], q)
	k.bytes += q.bytes
}

func (k *parked) remove(q *question) {
	delete(k.byID, q.id)
	k.bytes -= q.bytes
	id := q.msg.ProducerID
	if k.byProducer[id] = slices.DeleteFunc(k.byProducer[id], func(o *question) bool { return o == q }); len(k.byProducer[id]) == 0 {
		delete(k.byProducer, id)
	}
}

// end notes that a producer's transaction was ended. What waits was sent before that:
// if the answer is about the next transaction, the request is none of it, and would
// put an old offset into it.
func (k *parked) end(producer int64) {
	for _, q := range k.byProducer[producer] {
		q.ended = true
	}
}

// ask asks the coordinator of a transaction whether the group's partition is part
// of it, or to make it so, and parks the request.
func (x step) ask(r *machine.Request, m *kmsg.TxnOffsetCommitRequest) *kerr.Error {
	k := &x.shard.txns.parked
	q := &question{req: *r, msg: m, bytes: parkedSize(m), until: x.Now.Add(askPatience)}
	if k.bytes+q.bytes > maxParked {
		return kerr.CoordinatorLoadInProgress
	}
	partition := x.partitionOf(metadata.OffsetsTopic, m.Group)
	state := x.partitionOf(metadata.TransactionsTopic, m.TransactionalID)
	if partition < 0 || state < 0 {
		return kerr.CoordinatorNotAvailable
	}
	by := x.Image.Topic(metadata.TransactionsTopic).Partitions[state]
	if by.Leader == metadata.NoBroker {
		return kerr.CoordinatorNotAvailable
	}
	x.Seq++
	q.id, q.epoch = x.Seq, by.LeaderEpoch
	k.add(q)
	x.Out.Sends = append(x.Out.Sends, machine.Send{ID: q.id, To: by.Leader, Msg: questionFor(m, partition)})
	if k.seq == 0 {
		k.seq = x.Arm(machine.TimerKey{Kind: kind.TimerAsk}, q.until)
	}
	return nil
}

// partitionOf returns the partition of a topic that an id belongs to, -1 if there
// is no such topic.
func (x step) partitionOf(topic, id string) int32 {
	if x.Image == nil {
		return -1
	}
	t := x.Image.Topic(topic)
	if t == nil || len(t.Partitions) == 0 {
		return -1
	}
	return journal.PartitionFor(id, int32(len(t.Partitions)))
}

// addsItself is the version of TxnOffsetCommit from which the client leaves it to
// us to add the partition to the transaction (KIP-890, version 2 of transactions).
const addsItself = 5

func questionFor(m *kmsg.TxnOffsetCommitRequest, partition int32) *kmsg.AddPartitionsToTxnRequest {
	req := kmsg.NewPtrAddPartitionsToTxnRequest()
	req.Version = 5
	t := kmsg.NewAddPartitionsToTxnRequestTransaction()
	t.TransactionalID, t.ProducerID, t.ProducerEpoch, t.VerifyOnly = m.TransactionalID, m.ProducerID, m.ProducerEpoch, m.Version < addsItself
	t.Topics = []kmsg.AddPartitionsToTxnRequestTransactionTopic{{Topic: metadata.OffsetsTopic, Partitions: []int32{partition}}}
	req.Transactions = append(req.Transactions, t)
	return req
}

// parkedSize is about how many bytes a request takes.
func parkedSize(m *kmsg.TxnOffsetCommitRequest) int {
	n := 400 + len(m.TransactionalID) + len(m.Group) + len(m.MemberID) + length(m.InstanceID)
	for i := range m.Topics {
		n += 80 + len(m.Topics[i].Topic)
		for j := range m.Topics[i].Partitions {
			n += 80 + length(m.Topics[i].Partitions[j].Metadata)
		}
	}
	return n
}

func length(s *string) int {
	if s == nil {
		return 0
	}
	return len(*s)
}

// answered handles the answer of a transaction coordinator, or that there is none.
func (x step) answered(e machine.Sent) {
	q := x.shard.txns.parked.byID[e.ID]
	if q == nil {
		return // It came too late.
	}
	x.shard.txns.parked.remove(q)
	start, err := x.readAnswer(e)
	switch {
	case err != nil:
	case x.hasNewCoordinator(q):
		err = kerr.NotCoordinator
	case q.ended:
		err = kerr.TransactionAbortable
	}
	if err != nil {
		x.replyTxnCommit(&q.req, q.msg, refusal(err, q.msg.Version))
		return
	}
	x.commitInTxn(&q.req, q.msg, start)
}

// hasNewCoordinator says whether the transaction has another coordinator than the one that
// was asked, or the same one whose log has lost its end since: the transaction may be lost,
// and then nothing would ever end what we let it begin here.
func (x step) hasNewCoordinator(q *question) bool {
	state := x.partitionOf(metadata.TransactionsTopic, q.msg.TransactionalID)
	return state < 0 || x.Image.Topic(metadata.TransactionsTopic).Partitions[state].LeaderEpoch != q.epoch
}

// readAnswer reads the coordinator's answer about the one partition that it was
// asked about.
func (x step) readAnswer(e machine.Sent) (machine.TxnStart, *kerr.Error) {
	resp, ok := e.Msg.(*kmsg.AddPartitionsToTxnResponse)
	switch {
	case e.Err != nil || !ok:
		return 0, kerr.NetworkException
	case resp.ErrorCode != 0:
		return 0, kerr.TypedErrorForCode(resp.ErrorCode)
	case len(resp.Transactions) != 1 || len(resp.Transactions[0].Topics) != 1 || len(resp.Transactions[0].Topics[0].Partitions) != 1:
		return 0, kerr.NetworkException
	}
	p := &resp.Transactions[0].Topics[0].Partitions[0]
	if p.ErrorCode != 0 {
		return 0, kerr.TypedErrorForCode(p.ErrorCode)
	}
	if machine.StoreRunOf(&p.UnknownTags).Differs(x.shard.run) {
		return 0, kerr.NotCoordinator // One of us has not noticed that the store is another one.
	}
	return max(machine.TxnStartOf(&p.UnknownTags), 0), nil
}

// knowsAbortable is the version of TxnOffsetCommit from which clients know
// TRANSACTION_ABORTABLE.
const knowsAbortable = 4

// refusal is what a client is told of an error of its transaction's coordinator.
func refusal(err *kerr.Error, version int16) *kerr.Error {
	switch err {
	case kerr.TransactionAbortable, kerr.InvalidTxnState:
		if version < knowsAbortable {
			return kerr.InvalidTxnState
		}
		return kerr.TransactionAbortable
	case kerr.ProducerFenced, kerr.InvalidProducerEpoch:
		return kerr.InvalidProducerEpoch
	case kerr.NetworkException:
		return kerr.CoordinatorLoadInProgress
	case kerr.ConcurrentTransactions:
		if version < addsItself { // Older clients do not expect it here.
			return kerr.CoordinatorNotAvailable
		}
		return err
	case kerr.CoordinatorLoadInProgress, kerr.CoordinatorNotAvailable, kerr.NotCoordinator,
		kerr.UnknownTopicOrPartition, kerr.NotEnoughReplicas, kerr.RequestTimedOut, kerr.OperationNotAttempted:
		return kerr.CoordinatorNotAvailable
	case kerr.NotLeaderForPartition, kerr.KafkaStorageError:
		return kerr.NotCoordinator
	case kerr.InvalidProducerIDMapping, kerr.TransactionalIDAuthorizationFailed:
		return err
	}
	return kerr.UnknownServerError
}

// askFired gives up questions that were not answered in time.
func (x step) askFired(e machine.TimerFired) {
	k := &x.shard.txns.parked
	if e.Seq != k.seq {
		return
	}
	k.seq = 0
	next := time.Time{}
	for _, id := range slices.Sorted(maps.Keys(k.byID)) {
		q := k.byID[id]
		if x.Now.Before(q.until) {
			next = q.until
			break // They are asked in the order of time.
		}
		k.remove(q)
		x.replyTxnCommit(&q.req, q.msg, kerr.CoordinatorLoadInProgress)
	}
	if !next.IsZero() {
		k.seq = x.Arm(machine.TimerKey{Kind: kind.TimerAsk}, next)
	}
}
