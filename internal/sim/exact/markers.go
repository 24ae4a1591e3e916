package exact

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/journal"
	"muster/internal/machine"
	"muster/internal/metadata"
	"muster/internal/partition"
	"muster/internal/store"
)

// markers handles WriteTxnMarkers: those for groups go to their shards, the others
// into the logs. It is answered when all are.
func (b *broker) markers(from message, m *kmsg.WriteTxnMarkersRequest, reply func(any)) {
	resp := m.ResponseKind().(*kmsg.WriteTxnMarkersResponse)
	left := 1
	done := func() {
		if left--; left == 0 {
			reply(resp)
		}
	}
	for i := range m.Markers {
		mk := &m.Markers[i]
		rm := kmsg.NewWriteTxnMarkersResponseMarker()
		rm.ProducerID = mk.ProducerID
		for _, t := range mk.Topics {
			rt := kmsg.NewWriteTxnMarkersResponseMarkerTopic()
			rt.Topic = t.Topic
			rt.Partitions = make([]kmsg.WriteTxnMarkersResponseMarkerTopicPartition, len(t.Partitions))
			for j, n := range t.Partitions {
				rp := &rt.Partitions[j]
				rp.Partition = n
				left++
				b.w.Count("marker received")
				b.marker(from, m.Version, mk, store.TopicPartition{Topic: t.Topic, Partition: n}, func(code int16) {
					rp.ErrorCode = code
					b.w.Count(fmt.Sprintf("marker answered by %d", code))
					if code == 0 || code == kerr.InvalidProducerEpoch.Code {
						b.w.model.acknowledged(store.TopicPartition{Topic: t.Topic, Partition: n}, mk)
					}
					b.w.Tracef("broker %d: marker of %d/%d on %s-%d, commit %v, coordinator epoch %d: %d", b.id, mk.ProducerID, mk.ProducerEpoch, t.Topic, n, mk.Committed, mk.CoordinatorEpoch, code)
					done()
				})
			}
			rm.Topics = append(rm.Topics, rt)
		}
		resp.Markers = append(resp.Markers, rm)
	}
	done()
}

// marker has one marker written.
func (b *broker) marker(from message, version int16, mk *kmsg.WriteTxnMarkersRequestMarker, tp store.TopicPartition, done func(int16)) {
	if tp.Topic == metadata.OffsetsTopic {
		b.groupMarker(version, mk, tp, done)
		return
	}
	p := b.manager.Get(tp.Topic, tp.Partition)
	if p == nil {
		done(kerr.NotLeaderForPartition.Code)
		return
	}
	if mk.TransactionVersion < 2 && b.w.store.log(tp).loaded > from.opens {
		// Below version 2 of transactions a leader that is new since
		// does not know when the open one began, and cannot tell that a marker is
		// of the one before. Kafka never can.
		b.w.Count("marker of before a load")
		done(kerr.NotLeaderForPartition.Code)
		return
	}
	start := int64(machine.TxnStartOf(&mk.UnknownTags))
	b.w.model.sending = start
	p.WriteMarker(context.Background(), partition.Marker{
		ProducerID: mk.ProducerID, ProducerEpoch: mk.ProducerEpoch, Commit: mk.Committed,
		CoordinatorEpoch: mk.CoordinatorEpoch, Version: mk.TransactionVersion, Start: start, Run: string(machine.StoreRunOf(&mk.UnknownTags)),
	}, func(err *kerr.Error) { done(code(err)) })
	b.w.model.sending = noStart
}

// groupMarker gives a marker to the shard of groups that is the writer of its
// partition.
func (b *broker) groupMarker(version int16, mk *kmsg.WriteTxnMarkersRequestMarker, tp store.TopicPartition, done func(int16)) {
	one := *mk
	t := kmsg.NewWriteTxnMarkersRequestMarkerTopic()
	t.Topic, t.Partitions = tp.Topic, []int32{tp.Partition}
	one.Topics = []kmsg.WriteTxnMarkersRequestMarkerTopic{t}
	req := kmsg.NewPtrWriteTxnMarkersRequest()
	req.Version, req.Markers = version, []kmsg.WriteTxnMarkersRequestMarker{one}
	b.ask(tp, b.name(), req, func(r kmsg.Response) {
		done(r.(*kmsg.WriteTxnMarkersResponse).Markers[0].Topics[0].Partitions[0].ErrorCode)
	})
}

func code(err *kerr.Error) int16 {
	if err == nil {
		return 0
	}
	return err.Code
}

// asker asks the coordinator of a transaction for a leader, as package peer does.
type asker struct {
	b    *broker
	life int
}

// epochOf is the leader epoch of the partition that coordinates a transactional id.
func (a asker) epochOf(id string) int32 {
	all := a.b.image.Topic(stateTopic).Partitions
	return all[journal.PartitionFor(id, int32(len(all)))].LeaderEpoch
}

// Ask implements partition.TxnCoordinator.
func (a asker) Ask(q partition.TxnQuestion, done func(partition.TxnAnswer)) {
	w := a.b.w
	t := kmsg.NewAddPartitionsToTxnRequestTransactionTopic()
	t.Topic, t.Partitions = q.Topic, []int32{q.Partition}
	machine.TopicID(q.TopicID).Set(&t.UnknownTags)
	x := kmsg.NewAddPartitionsToTxnRequestTransaction()
	x.TransactionalID, x.ProducerID, x.ProducerEpoch, x.VerifyOnly = q.TransactionalID, q.ProducerID, q.ProducerEpoch, !q.Add
	x.Topics = []kmsg.AddPartitionsToTxnRequestTransactionTopic{t}
	req := kmsg.NewPtrAddPartitionsToTxnRequest()
	req.Version, req.Transactions = 5, []kmsg.AddPartitionsToTxnRequestTransaction{x}
	w.Count("question of a leader")
	epoch := a.epochOf(q.TransactionalID)
	w.send(message{from: a.b.name(), to: w.coordinator(a.b.image, stateTopic, q.TransactionalID), body: req, timeout: peerTimeout}, func(answer any) {
		out := partition.TxnAnswer{Err: kerr.NetworkException, Start: -1}
		if answer != nil {
			out = answerTo(answer.(*kmsg.AddPartitionsToTxnResponse))
		}
		if w.Chance(2 * w.faults().slow) {
			w.Count("slow answer to a leader")
			w.After(w.Between(0, 6*time.Second), func() { a.told(q, epoch, out, done) })
			return
		}
		a.told(q, epoch, out, done)
	})
}

// told gives a leader the answer to its question, unless there is another coordinator by now.
func (a asker) told(q partition.TxnQuestion, epoch int32, out partition.TxnAnswer, done func(partition.TxnAnswer)) {
	w := a.b.w
	a.b.do(a.life, func() {
		if out.Err == nil && a.epochOf(q.TransactionalID) != epoch {
			w.Count("answer of a coordinator that was replaced")
			out = partition.TxnAnswer{Err: kerr.NotCoordinator, Start: -1}
		}
		w.Tracef("broker %d: %s/%d/%d on %s-%d, add %v: %v", a.b.id, q.TransactionalID, q.ProducerID, q.ProducerEpoch, q.Topic, q.Partition, q.Add, out.Err)
		done(out)
	})
}

// answerTo reads the coordinator's answer about one partition.
func answerTo(r *kmsg.AddPartitionsToTxnResponse) partition.TxnAnswer {
	out := partition.TxnAnswer{Start: -1}
	code := r.ErrorCode
	if code == 0 {
		p := &r.Transactions[0].Topics[0].Partitions[0]
		code, out.Start, out.Run = p.ErrorCode, int64(machine.TxnStartOf(&p.UnknownTags)), string(machine.StoreRunOf(&p.UnknownTags))
	}
	if code != 0 {
		out.Err = kerr.TypedErrorForCode(code)
	}
	return out
}
