package txn

import (
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/journal"
	"muster/internal/machine"
	"muster/internal/metadata"
)

// addition is partitions that are to be part of a transaction, or are asked
// whether they are.
type addition struct {
	id       string
	producer pair
	verify   bool // asks only
	version  int16
	topics   []topic
	ids      []machine.TopicID // of the topics, as a broker knows them that asks; empty for a client
}

// result is what became of an addition.
type result struct {
	err   *kerr.Error // nil if it differs from partition to partition
	codes []int16     // in the order of the partitions; nil if all are well
	start machine.TxnStart
	run   machine.StoreRun
	waits bool // there will be one later
}

// add handles an addition. The order of its checks is Kafka's since 4.0: while a
// transaction ends its next producer may be known to the client, but not here.
func (x *step) add(q *question, a *addition) result {
	t := x.txns[a.id]
	switch {
	case t == nil:
		return result{err: kerr.InvalidProducerIDMapping}
	case t.ending != nil && !a.verify:
		x.wait(t, q)
		return result{waits: true}
	case a.producer.id != t.hard.Producer.id:
		x.noteRefused(t, q, a.producer)
		return result{err: kerr.InvalidProducerIDMapping}
	case a.producer.epoch != t.hard.Producer.epoch, t.ending == nil && x.hasLostPast(t):
		x.noteRefused(t, q, a.producer)
		return result{err: kerr.ProducerFenced}
	case t.ending != nil:
		x.wait(t, q)
		return result{waits: true}
	case a.verify:
		return t.hard.verify(a.topics)
	}
	return x.addTo(t, a)
}

// addTo makes partitions part of a transaction, which begins with the first.
func (x *step) addTo(t *txn, a *addition) result {
	if containsAll(t.hard.Topics, a.topics) { // Or nothing is asked for, which begins nothing.
		return result{start: machine.TxnStart(t.hard.Start)}
	}
	v := *t.hard
	if v.State != Ongoing {
		v.State, v.Topics, v.Start = Ongoing, nil, nextStart(v.Start, x.now)
	}
	v.Topics, v.Updated, v.Version = union(v.Topics, a.topics), x.now.UnixMilli(), a.version
	if !x.fits(t.id, &v) {
		return result{err: kerr.UnknownServerError} // As Kafka, to clients that know no better one.
	}
	x.write(t.id, &v)
	return result{start: machine.TxnStart(v.Start)}
}

// nextStart is when a transaction begins: now, but never at the same time as the
// one before, since brokers tell them apart by it.
func nextStart(before int64, now time.Time) int64 {
	start := now.UnixMilli()
	if ahead := before - start; before >= 0 && ahead >= 0 && ahead < time.Minute.Milliseconds() {
		return before + 1
	}
	return start // Also if the clock was set back by much.
}

// verify says which partitions are part of the transaction.
func (v *Value) verify(asked []topic) result {
	out := result{start: machine.TxnStart(v.Start)}
	for _, t := range asked {
		for _, p := range t.partitions {
			code := int16(0)
			if v.State != Ongoing || !contains(v.Topics, t.name, p) {
				code = kerr.TransactionAbortable.Code
			}
			out.codes = append(out.codes, code)
		}
	}
	return out
}

// addOffsets handles AddOffsetsToTxn, which adds the partition that has the
// group's offsets.
func (x *step) addOffsets(q *question, m *kmsg.AddOffsetsToTxnRequest) {
	if m.TransactionalID == "" {
		x.answerOffsets(q, m, kerr.InvalidRequest)
		return
	}
	offsets := x.topic(metadata.OffsetsTopic)
	if offsets == nil || len(offsets.Partitions) == 0 {
		x.answerOffsets(q, m, kerr.CoordinatorNotAvailable)
		return
	}
	partition := journal.PartitionFor(m.Group, int32(len(offsets.Partitions)))
	r := x.add(q, &addition{
		id: m.TransactionalID, producer: pair{m.ProducerID, m.ProducerEpoch},
		topics: []topic{{metadata.OffsetsTopic, []int32{partition}}},
	})
	if !r.waits {
		x.answerOffsets(q, m, r.err)
	}
}

func (x *step) answerOffsets(q *question, m *kmsg.AddOffsetsToTxnRequest, err *kerr.Error) {
	resp := kmsg.NewPtrAddOffsetsToTxnResponse()
	resp.Version, resp.ErrorCode = m.Version, codeFor(m, err)
	x.reply(q.request, resp)
}

// topic returns a topic as of now, nil if there is none.
func (x *step) topic(name string) *metadata.Topic {
	if x.image == nil {
		return nil
	}
	return x.image.Topic(name)
}

// checkPartitions says what is wrong with partitions: all of them must be such
// that a transaction can be ended there, or none is added. codes is nil if nothing
// is wrong.
func (x *step) checkPartitions(a *addition) (codes []int16) {
	asked := a.topics
	n, wrong := 0, false
	for _, t := range asked {
		n += len(t.partitions)
	}
	codes = make([]int16, 0, n)
	for i, t := range asked {
		found := x.topic(t.name)
		if a.isAnother(i, found) {
			found = nil
		}
		for _, p := range t.partitions {
			code := kerr.OperationNotAttempted.Code
			if err := x.checkPartition(found, t.name, p); err != nil {
				code, wrong = err.Code, true
			}
			codes = append(codes, code)
		}
	}
	if !wrong {
		return nil
	}
	return codes
}

// isAnother says whether the broker that asks means another topic of the same name
// than is known here: one of the two has not heard yet that it was deleted and made
// again. Were it let through, and should the deletion be heard of before the
// transaction ends, the partition would get no marker, as one that is gone.
func (a *addition) isAnother(i int, found *metadata.Topic) bool {
	var nobodys machine.TopicID
	return found != nil && i < len(a.ids) && a.ids[i] != nobodys && a.ids[i] != machine.TopicID(found.ID)
}

func (x *step) checkPartition(t *metadata.Topic, name string, partition int32) *kerr.Error {
	internal := metadata.IsInternal(name)
	switch {
	case internal && name != metadata.OffsetsTopic:
		return kerr.InvalidTopicException
	case t == nil || partition < 0 || int(partition) >= len(t.Partitions):
		return kerr.UnknownTopicOrPartition
	case !internal && !t.Config.Traits.Transactions:
		return kerr.UnsupportedForMessageFormat
	}
	return nil
}
