package txn

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/machine"
)

// addBatched is the version of AddPartitionsToTxn from which brokers send it, about
// several transactions and with questions that add nothing. Clients send older ones.
const addBatched = 4

// batch is an answer about several transactions, some of which may wait.
type batch struct {
	resp *kmsg.AddPartitionsToTxnResponse
	left int // that have no answer yet
}

// partitionsRequest handles AddPartitionsToTxn, each transaction in it by itself.
func (x *step) partitionsRequest(q question, m *kmsg.AddPartitionsToTxnRequest) {
	if m.Version < addBatched {
		x.ask(&q)
		return
	}
	resp := kmsg.NewPtrAddPartitionsToTxnResponse()
	resp.Version = m.Version
	resp.Transactions = make([]kmsg.AddPartitionsToTxnResponseTransaction, len(m.Transactions))
	if len(m.Transactions) == 0 {
		x.reply(q.request, resp)
		return
	}
	q.batch = &batch{resp: resp, left: len(m.Transactions)}
	for q.index = range m.Transactions {
		x.ask(&q)
	}
}

func (x *step) addPartitions(q *question, m *kmsg.AddPartitionsToTxnRequest) {
	a := additionOf(q, m)
	if a.id == "" {
		x.answerPartitions(q, m, result{err: kerr.InvalidRequest})
		return
	}
	if codes := x.checkPartitions(&a); codes != nil {
		x.answerPartitions(q, m, result{codes: codes, start: machine.NoTxnStart})
		return
	}
	if r := x.add(q, &a); !r.waits {
		x.answerPartitions(q, m, r)
	}
}

// additionOf reads what is to be added: all that the request is about, or one of
// its transactions. Only brokers of a client of TV2 add on its behalf.
func additionOf(q *question, m *kmsg.AddPartitionsToTxnRequest) addition {
	if q.batch == nil {
		a := addition{id: m.TransactionalID, producer: pair{m.ProducerID, m.ProducerEpoch}, topics: make([]topic, len(m.Topics))}
		for i, t := range m.Topics {
			a.topics[i] = topic{t.Topic, t.Partitions}
		}
		return a
	}
	t := &m.Transactions[q.index]
	a := addition{id: t.TransactionalID, producer: pair{t.ProducerID, t.ProducerEpoch}, verify: t.VerifyOnly, version: tv2, topics: make([]topic, len(t.Topics)), ids: make([]machine.TopicID, len(t.Topics))}
	for i := range t.Topics {
		a.topics[i] = topic{t.Topics[i].Topic, t.Topics[i].Partitions}
		a.ids[i] = machine.TopicIDOf(&t.Topics[i].UnknownTags)
	}
	return a
}

// answerPartitions answers for every partition that was asked about.
func (x *step) answerPartitions(q *question, m *kmsg.AddPartitionsToTxnRequest, r result) {
	r.run = machine.StoreRun(x.run.ID)
	if q.batch != nil {
		q.batch.resp.Transactions[q.index] = r.transaction(m, q.index)
		if q.batch.left--; q.batch.left == 0 {
			x.reply(q.request, q.batch.resp)
		}
		return
	}
	resp := kmsg.NewPtrAddPartitionsToTxnResponse()
	resp.Version, resp.Topics = m.Version, r.topics(m)
	x.reply(q.request, resp)
}

// topics is the answer to a client.
func (r *result) topics(m *kmsg.AddPartitionsToTxnRequest) (list []kmsg.AddPartitionsToTxnResponseTopic) {
	n := 0
	for _, t := range m.Topics {
		out := kmsg.NewAddPartitionsToTxnResponseTopic()
		out.Topic = t.Topic
		out.Partitions = make([]kmsg.AddPartitionsToTxnResponseTopicPartition, len(t.Partitions))
		for i, p := range t.Partitions {
			out.Partitions[i].Partition, out.Partitions[i].ErrorCode = p, r.code(m, n)
			n++
		}
		list = append(list, out)
	}
	return list
}

// transaction is the answer about one of several transactions. Where all is well
// the broker that asks is told which transaction it is.
func (r *result) transaction(m *kmsg.AddPartitionsToTxnRequest, index int) kmsg.AddPartitionsToTxnResponseTransaction {
	t := &m.Transactions[index]
	out := kmsg.NewAddPartitionsToTxnResponseTransaction()
	out.TransactionalID = t.TransactionalID
	n := 0
	for i := range t.Topics {
		topic := kmsg.NewAddPartitionsToTxnResponseTransactionTopic()
		topic.Topic = t.Topics[i].Topic
		topic.Partitions = make([]kmsg.AddPartitionsToTxnResponseTransactionTopicPartition, len(t.Topics[i].Partitions))
		for j, p := range t.Topics[i].Partitions {
			e := &topic.Partitions[j]
			e.Partition, e.ErrorCode = p, r.code(m, n)
			if e.ErrorCode == 0 {
				r.start.Set(&e.UnknownTags)
				r.run.Set(&e.UnknownTags)
			}
			n++
		}
		out.Topics = append(out.Topics, topic)
	}
	return out
}

// code is that of the nth partition.
func (r *result) code(m kmsg.Request, n int) int16 {
	switch {
	case r.err != nil:
		return codeFor(m, r.err)
	case r.codes != nil:
		return r.codes[n]
	}
	return 0
}

// failPartitions answers a whole request with an error.
func failPartitions(m *kmsg.AddPartitionsToTxnRequest, resp *kmsg.AddPartitionsToTxnResponse, err *kerr.Error) {
	r := result{err: err}
	if m.Version < addBatched {
		resp.Topics = r.topics(m)
		return
	}
	for i := range m.Transactions {
		resp.Transactions = append(resp.Transactions, r.transaction(m, i))
	}
}
