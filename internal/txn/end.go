package txn

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// endTV2 is the version of EndTxn from which an end raises the epoch, and the
// answer has the producer of the next transaction (KIP-890).
const endTV2 = 5

// endTxn handles EndTxn. It is answered when the decision is durable; the markers
// follow. While a transaction ends it never waits: it would then end the next one.
func (x *step) endTxn(q *question, m *kmsg.EndTxnRequest) {
	t := x.txns[m.TransactionalID]
	asks := pair{m.ProducerID, m.ProducerEpoch}
	switch {
	case m.TransactionalID == "":
		x.answerEnd(q, m, kerr.InvalidRequest, noPair)
	case t == nil:
		x.answerEnd(q, m, kerr.InvalidProducerIDMapping, noPair)
	case t.ending == nil && x.hasLostPast(t):
		x.noteRefused(t, q, asks)
		x.answerEnd(q, m, kerr.ProducerFenced, noPair)
	case m.Version >= endTV2:
		x.endWithBump(q, m, t, asks)
	default:
		x.endPlain(q, m, t, asks)
	}
}

// endPlain ends a transaction as clients did before KIP-890.
func (x *step) endPlain(q *question, m *kmsg.EndTxnRequest, t *txn, asks pair) {
	v := t.hard
	switch {
	case asks.id != v.Producer.id:
		x.noteRefused(t, q, asks)
		x.answerEnd(q, m, kerr.InvalidProducerIDMapping, noPair)
	case asks.epoch != v.Producer.epoch:
		x.noteRefused(t, q, asks)
		x.answerEnd(q, m, kerr.ProducerFenced, noPair)
	case t.ending != nil:
		x.answerEnd(q, m, kerr.ConcurrentTransactions, noPair)
	case v.State == complete(m.Commit):
		x.answerEnd(q, m, nil, v.Producer) // It is told again.
	case v.State != Ongoing:
		x.answerEnd(q, m, kerr.InvalidTxnState, noPair)
	default:
		n := *v
		n.State, n.Updated, n.Version = prepare(m.Commit), x.now.UnixMilli(), 0
		x.write(t.id, &n)
		x.answerEnd(q, m, nil, n.Producer)
		x.sendMarkers(t)
	}
}

// endWithBump ends a transaction and raises the epoch, so that nothing that was
// sent before reaches the next one. An abort without a transaction does too: the
// client does not know whether there is one.
func (x *step) endWithBump(q *question, m *kmsg.EndTxnRequest, t *txn, asks pair) {
	v := t.hard
	if err := v.checkEnd(m.Commit, asks); t.ending != nil || err != nil {
		if t.ending != nil {
			err = kerr.ConcurrentTransactions // Before all else: the client knows the next producer already.
		}
		if err == kerr.ProducerFenced || err == kerr.InvalidProducerIDMapping {
			x.noteRefused(t, q, asks)
		}
		x.answerEnd(q, m, err, noPair)
		return
	}
	if asks != v.Producer { // It is told again.
		x.answerEnd(q, m, nil, v.Producer)
		return
	}
	next := noPair
	if v.isUsedUp() {
		var ok bool
		if next, ok = x.takeID(q); !ok {
			return
		}
	}
	n := v.bumped(next)
	n.State, n.Updated, n.Version, n.Last = prepare(m.Commit), x.now.UnixMilli(), tv2, v.Producer.epoch
	x.write(t.id, n)
	x.answerEnd(q, m, nil, n.told())
	x.sendMarkers(t)
}

// checkEnd says whether a client of TV2 may end the transaction so, or has ended
// it so: the epoch before this one is a retry, but only after an end, for in the
// next transaction it would end that.
func (v *Value) checkEnd(commit bool, asks pair) *kerr.Error {
	before, bumped := v.beforeEnd()
	retry := bumped && asks == before
	switch {
	case asks.id != v.Producer.id && (v.Previous == none || asks.id != v.Previous):
		return kerr.InvalidProducerIDMapping
	case retry && v.State == complete(commit):
		return nil
	case retry:
		return kerr.InvalidTxnState
	case asks != v.Producer:
		return kerr.ProducerFenced
	case commit && v.State != Ongoing:
		return kerr.InvalidTxnState
	}
	return nil
}

// beforeEnd is the producer whose transaction has ended, if it ended with a bump.
// Without one the epoch before belongs to someone who was fenced.
func (v *Value) beforeEnd() (before pair, bumped bool) {
	switch {
	case !v.State.isComplete() || v.Version != tv2:
		return noPair, false
	case v.Previous != none:
		return pair{v.Previous, lastEpoch}, true
	}
	return pair{v.Producer.id, v.Producer.epoch - 1}, v.Producer.epoch > 0
}

func (x *step) answerEnd(q *question, m *kmsg.EndTxnRequest, err *kerr.Error, p pair) {
	resp := kmsg.NewPtrEndTxnResponse()
	resp.Version, resp.ErrorCode = m.Version, codeFor(m, err)
	resp.ProducerID, resp.ProducerEpoch = p.id, p.epoch
	x.reply(q.request, resp)
}
