package txn

import (
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
	"pgregory.net/rapid"

	"muster/internal/machine"
	"muster/internal/metadata"
)

func pick[T any](t *rapid.T, what string, from ...T) T { return rapid.SampledFrom(from).Draw(t, what) }

// rarely is true once in ten times: most events should be sensible, or a
// transaction never gets anywhere.
func rarely(t *rapid.T, what string) bool { return rapid.IntRange(0, 9).Draw(t, what) == 9 }

func pickID(t *rapid.T) string {
	if rarely(t, "another id") {
		return pick(t, "id", "z", "")
	}
	return pick(t, "id", "x", "x", "y")
}

// pickPair is mostly what the client was told last, or else an older one.
func (w *world) pickPair(t *rapid.T, id string) pair {
	told := w.pairs[id]
	switch {
	case len(told) == 0:
		return pair{pick(t, "producer id", int64(1), 7), 0}
	case rarely(t, "odd producer"):
		return pair{w.newest[id].id, rapid.Int16Range(-1, 32767).Draw(t, "epoch")}
	case rarely(t, "late"):
		return pick(t, "older", told...)
	}
	return w.newest[id]
}

func (w *world) init(t *rapid.T) {
	req := kmsg.NewPtrInitProducerIDRequest()
	req.Version = pick(t, "version", int16(5), 4, 3, 1)
	id := pickID(t)
	req.TransactionalID, req.TransactionTimeoutMillis = &id, pick(t, "timeout", int32(1000), 15_000, 30_000)
	if rarely(t, "odd timeout") {
		req.TransactionTimeoutMillis = 0
	}
	w.request(t, req)
}

func (w *world) initAgain(t *rapid.T) {
	req := kmsg.NewPtrInitProducerIDRequest()
	req.Version = pick(t, "version", int16(5), 3)
	id := pickID(t)
	p := w.pickPair(t, id)
	if told := w.pairs[id]; len(told) > 1 && rapid.Bool().Draw(t, "lost answer") {
		p = told[len(told)-2]
	}
	req.TransactionalID, req.TransactionTimeoutMillis = &id, 15_000
	req.ProducerID, req.ProducerEpoch = p.id, p.epoch
	w.request(t, req)
}

func pickPartitions(t *rapid.T) (out []topic) {
	for range rapid.IntRange(1, 3).Draw(t, "partitions") {
		out = append(out, topic{pick(t, "topic", "t", "t", "u"), []int32{pick(t, "partition", int32(0), 0, 1)}})
	}
	return out
}

func (w *world) add(t *rapid.T) {
	req := kmsg.NewPtrAddPartitionsToTxnRequest()
	req.Version = pick(t, "version", int16(3), 1, 5, 5)
	if req.Version >= addBatched {
		w.ask(t, req, false)
		return
	}
	req.TransactionalID = pickID(t)
	p := w.pickPair(t, req.TransactionalID)
	req.ProducerID, req.ProducerEpoch = p.id, p.epoch
	for _, topic := range pickPartitions(t) {
		req.Topics = append(req.Topics, kmsg.AddPartitionsToTxnRequestTopic{Topic: topic.name, Partitions: topic.partitions})
	}
	w.request(t, req)
}

func (w *world) verify(t *rapid.T) {
	req := kmsg.NewPtrAddPartitionsToTxnRequest()
	req.Version = 4
	w.ask(t, req, true)
}

func (w *world) ask(t *rapid.T, req *kmsg.AddPartitionsToTxnRequest, verify bool) {
	x := kmsg.NewAddPartitionsToTxnRequestTransaction()
	x.TransactionalID, x.VerifyOnly = pickID(t), verify
	p := w.pickPair(t, x.TransactionalID)
	x.ProducerID, x.ProducerEpoch = p.id, p.epoch
	for _, topic := range pickPartitions(t) {
		x.Topics = append(x.Topics, kmsg.AddPartitionsToTxnRequestTransactionTopic{Topic: topic.name, Partitions: topic.partitions})
	}
	req.Transactions = append(req.Transactions, x)
	w.request(t, req)
}

func (w *world) addOffsets(t *rapid.T) {
	req := kmsg.NewPtrAddOffsetsToTxnRequest()
	req.Version, req.TransactionalID, req.Group = 3, pickID(t), pick(t, "group", "g", "h")
	p := w.pickPair(t, req.TransactionalID)
	req.ProducerID, req.ProducerEpoch = p.id, p.epoch
	w.request(t, req)
}

func (w *world) end(t *rapid.T) { w.sendEnd(t, pickID(t)) }

// endRight ends a transaction that is going on, most of the time.
func (w *world) endRight(t *rapid.T) {
	for _, id := range w.shard.sortedIDs() {
		if w.shard.txns[id].hard.State == Ongoing {
			w.sendEnd(t, id)
			return
		}
	}
	t.Skip("nothing is going on")
}

func (w *world) sendEnd(t *rapid.T, id string) {
	req := kmsg.NewPtrEndTxnRequest()
	req.Version, req.TransactionalID, req.Commit = pick(t, "version", int16(5), 5, 4, 1), id, rapid.Bool().Draw(t, "commit")
	p := w.pickPair(t, id)
	if told := w.pairs[id]; len(told) > 1 && rarely(t, "lost answer") {
		p = told[len(told)-2]
	}
	req.ProducerID, req.ProducerEpoch = p.id, p.epoch
	w.request(t, req)
}

func (w *world) describe(t *rapid.T) {
	req := kmsg.NewPtrDescribeTransactionsRequest()
	req.TransactionalIDs = []string{"x", "", "nobody"}
	w.request(t, req)
	w.request(t, kmsg.NewPtrListTransactionsRequest())
}

// answer has a broker answer somehow, in any order.
func (w *world) answer(t *rapid.T) {
	if len(w.open) == 0 {
		t.Skip("nothing is under way")
	}
	i := rapid.IntRange(0, len(w.open)-1).Draw(t, "send")
	if rarely(t, "no answer") {
		w.deliver(t, i, machine.Sent{Err: errors.New("no answer")})
		return
	}
	w.deliver(t, i, machine.Sent{Msg: w.answerFor(w.open[i], func(tp string) int16 {
		return pick(t, fmt.Sprintf("code of %s", tp), int16(0), 0, 0, 3, 6, 7, 19, 20, 56, 43, 47, 52, -1, missing)
	})})
}

func (w *world) answerAll(t *rapid.T) {
	if len(w.open) == 0 {
		t.Skip("nothing is under way")
	}
	for len(w.open) > 0 {
		w.deliver(t, 0, machine.Sent{Msg: w.answerFor(w.open[0], func(string) int16 { return 0 })})
	}
}

// answerTwice repeats an answer of this life.
func (w *world) answerTwice(t *rapid.T) {
	if len(w.answered) == 0 {
		t.Skip("nothing was answered")
	}
	w.step(t, pick(t, "answer", w.answered...))
}

func (w *world) giveIDs(t *rapid.T) {
	for i, s := range w.open {
		if s.To == machine.Self {
			w.deliver(t, i, machine.Sent{Msg: w.answerFor(s, nil)})
			return
		}
	}
	t.Skip("nobody asks for ids")
}

func (w *world) wait(t *rapid.T) {
	w.pass(t, time.Duration(pick(t, "milliseconds", 0, 1, 50, 100, 600, 5_000, 11_000, 40_000))*time.Millisecond, false)
}

func (w *world) staleTimer(t *rapid.T) {
	if len(w.stale) == 0 {
		t.Skip("no stale timer")
	}
	tm := pick(t, "timer", w.stale...)
	w.step(t, machine.TimerFired{Key: tm.Key, Seq: tm.Seq})
}

// topics moves leaders, and deletes topics.
func (w *world) topics(t *rapid.T) {
	list := []string{metadata.OffsetsTopic + "=1,2", pick(t, "t", "t=1,2", "t=2,2", "t=-1,1", "t=1")}
	if !rarely(t, "u is gone") {
		list = append(list, "u=3")
	}
	w.image = imageOf(list...)
	w.step(t, machine.TopicsChanged{Topics: []string{"t", "u"}})
}

func (w *world) crash(t *rapid.T) {
	if rapid.Bool().Draw(t, "compacted") {
		w.log = compacted(w.log, rapid.Bool().Draw(t, "with tombstones"))
	}
	w.load(t)
}

func (w *world) appendFails(*rapid.T) { w.failing = true }
