package group

import (
	"errors"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"
	"pgregory.net/rapid"

	"muster/internal/machine"
)

// pickProducer returns a producer, of an epoch that the shard knows most of the
// time.
func (w *world) pickProducer(t *rapid.T) (id int64, epoch int16) {
	id = pick(t, "producer", int64(1), 1, 2, 3)
	if p := w.shard.txns.producers[id]; p != nil {
		epoch = p.epoch
	}
	if rarely(t, "another epoch") {
		epoch += pick(t, "by", int16(1), -1, 2)
	}
	return id, epoch
}

func (w *world) txnCommit(t *rapid.T) {
	req := kmsg.NewPtrTxnOffsetCommitRequest()
	req.Version, req.Group = pick(t, "version", int16(5), 4, 3, 2, 0), pickGroup(t)
	req.ProducerID, req.ProducerEpoch = w.pickProducer(t)
	req.TransactionalID = pick(t, "id", "x", "x", "x", "y")
	req.Generation = -1
	if rarely(t, "a member") {
		req.MemberID, req.InstanceID, req.Generation = w.pickIdentity(t, req.Group)
	}
	for _, topic := range append(pickTopics(t), "t") {
		p := kmsg.NewTxnOffsetCommitRequestTopicPartition()
		p.Partition, p.Offset = pick(t, "partition", int32(0), 1), rapid.Int64Range(0, 9).Draw(t, "offset")
		req.Topics = append(req.Topics, kmsg.TxnOffsetCommitRequestTopic{Topic: topic, Partitions: []kmsg.TxnOffsetCommitRequestTopicPartition{p}})
	}
	w.request(t, req)
	if len(w.sends) > 0 && !rarely(t, "answer later") {
		w.answer(t)
	}
}

// pickStart returns the start of some transaction.
func (w *world) pickStart(t *rapid.T) machine.TxnStart {
	if rarely(t, "the next transaction") {
		w.start++
	}
	return machine.TxnStart(pick(t, "start", w.start, w.start, w.start-1, -1))
}

func (w *world) answer(t *rapid.T) {
	if len(w.sends) == 0 {
		t.Skip("nobody was asked")
	}
	i := rapid.IntRange(0, len(w.sends)-1).Draw(t, "question")
	q := w.sends[i]
	w.sends = slices.Delete(w.sends, i, i+1)
	if rarely(t, "lost") {
		w.step(t, machine.Sent{ID: q.ID, Err: errors.New("lost")})
		return
	}
	code := int16(0)
	if rarely(t, "refused") {
		code = pick(t, "code", int16(51), 90, 120)
	}
	w.step(t, machine.Sent{ID: q.ID, Msg: answerTo(q.Msg.(*kmsg.AddPartitionsToTxnRequest), code, w.pickStart(t))})
}

func (w *world) marker(t *rapid.T) {
	m := kmsg.NewWriteTxnMarkersRequestMarker()
	m.ProducerID, m.ProducerEpoch = w.pickProducer(t)
	m.Committed = rapid.Bool().Draw(t, "commit")
	if m.TransactionVersion = pick(t, "tv", int8(0), 0, 2); m.TransactionVersion == 2 {
		m.ProducerEpoch++
	}
	if rarely(t, "another coordinator") {
		m.CoordinatorEpoch = pick(t, "coordinator", int32(1), 2)
	}
	w.pickStart(t).Set(&m.UnknownTags)
	w.writeMarker(t, m)
}

func (w *world) writeMarker(t *rapid.T, m kmsg.WriteTxnMarkersRequestMarker) {
	req := kmsg.NewPtrWriteTxnMarkersRequest()
	req.Version = 2
	req.Markers = append(req.Markers, m)
	w.request(t, req)
}

// endAll ends all transactions, as their coordinators do sooner or later.
func (w *world) endAll(t *rapid.T) {
	for _, id := range slices.Sorted(maps.Keys(w.shard.txns.producers)) {
		p := w.shard.txns.producers[id]
		m := kmsg.NewWriteTxnMarkersRequestMarker()
		m.ProducerID, m.ProducerEpoch, m.CoordinatorEpoch = id, p.epoch, p.coordinatorEpoch
		w.writeMarker(t, m)
		if p.open != nil {
			t.Fatalf("producer %d is still open", id)
		}
	}
}
