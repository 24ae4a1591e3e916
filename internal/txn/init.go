package txn

import (
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/journal"
)

// init handles InitProducerId with a transactional id. Versions below 3 have no
// producer id and epoch; below 4 they know no PRODUCER_FENCED.
func (x *step) init(q *question, m *kmsg.InitProducerIDRequest) {
	id := ""
	if m.TransactionalID != nil {
		id = *m.TransactionalID
	}
	if err := x.checkInit(id, m); err != nil {
		x.answerInit(q, m, err, noPair)
		return
	}
	t := x.txns[id]
	switch {
	case t == nil:
		// Also if the client has a producer id: its transactional id has expired.
		x.create(q, m, id)
	case t.ending != nil:
		x.wait(t, q)
	default:
		x.initAgain(q, m, t)
	}
}

func (x *step) checkInit(id string, m *kmsg.InitProducerIDRequest) *kerr.Error {
	switch timeout := time.Duration(m.TransactionTimeoutMillis) * time.Millisecond; {
	case id == "" || len(id) > maxID:
		return kerr.InvalidRequest
	case timeout <= 0 || timeout > x.cfg.MaxTimeout:
		return kerr.InvalidTransactionTimeout
	case (m.ProducerID == none) != (m.ProducerEpoch == none):
		return kerr.InvalidRequest
	}
	return nil
}

// create begins a transactional id.
func (x *step) create(q *question, m *kmsg.InitProducerIDRequest, id string) {
	v := &Value{Timeout: m.TransactionTimeoutMillis, Updated: x.now.UnixMilli(), Start: none, Previous: none, Next: noPair, Last: none}
	if !x.fits(id, v) {
		x.answerInit(q, m, kerr.UnknownServerError, noPair)
		return
	}
	fresh, ok := x.takeID(q)
	if !ok {
		return
	}
	v.Producer = fresh
	x.write(id, v)
	x.gave(q, m, x.txns[id])
}

// initAgain handles InitProducerId of a transactional id that is not ending.
func (x *step) initAgain(q *question, m *kmsg.InitProducerIDRequest, t *txn) {
	c := t.hard.claimOf(m)
	if c == claimStale || c != claimNew && x.hasLostPast(t) {
		x.noteRefused(t, q, pair{m.ProducerID, m.ProducerEpoch})
		x.answerInit(q, m, kerr.ProducerFenced, noPair)
		return
	}
	if t.hard.State == Ongoing {
		last, kind := int16(none), takes(q, m)
		if c == claimCurrent {
			last, kind = m.ProducerEpoch, "" // Who is told to try again will do so with what it has.
		}
		if x.fence(t, last, q, kind) {
			x.answerInit(q, m, kerr.ConcurrentTransactions, noPair)
		}
		return
	}
	v := *t.hard
	v.Timeout, v.State, v.Updated, v.Start, v.Version = m.TransactionTimeoutMillis, Empty, x.now.UnixMilli(), none, 0
	switch {
	case c == claimAgain:
	case v.isUsedUp() || x.hasLostPast(t):
		fresh, ok := x.takeID(q)
		if !ok {
			return
		}
		v.Previous, v.Producer, v.Last = v.Producer.id, fresh, v.Producer.epoch
	default:
		v.Previous, v.Last = none, v.Producer.epoch
		v.Producer.epoch++
	}
	if c == claimNew {
		v.Last = none // So that whoever had it before never returns.
		x.noteTaken(t, q, takes(q, m), v.Producer)
	}
	x.write(t.id, &v)
	x.gave(q, m, t)
}

// claim is what an InitProducerId says about who sends it.
type claim int8

const (
	claimNew     claim = iota // someone who has no producer id: the one who has it is to be fenced
	claimCurrent              // the one who has it
	claimAgain                // the one who has it and was not told, because an answer got lost
	claimStale                // someone who was fenced
)

// claimOf applies the rules of KIP-360. Kafka does not look at the epoch while a
// transaction is going on, so that someone who was fenced long ago aborts it.
func (v *Value) claimOf(m *kmsg.InitProducerIDRequest) claim {
	asks := pair{m.ProducerID, m.ProducerEpoch}
	before := pair{v.Producer.id, v.Last}
	if v.Previous != none {
		before.id = v.Previous
	}
	switch {
	case asks == noPair:
		return claimNew
	case asks == v.Producer:
		return claimCurrent
	case v.State != Ongoing && v.Last != none && asks == before:
		return claimAgain
	}
	return claimStale
}

// fence aborts a transaction with a higher epoch, once: the client that asked for
// it is told to try again, and is given a higher one still. last is the epoch that
// may claim the producer again. It returns false if it lacks a producer id; the
// question then waits for one. The kind is what the journal tells, if it does.
func (x *step) fence(t *txn, last int16, q *question, kind journal.TxnKind) bool {
	next := noPair
	if t.hard.isUsedUp() {
		var ok bool
		if next, ok = x.takeID(q); !ok {
			return false
		}
	}
	v := t.hard.bumped(next)
	v.State, v.Updated, v.Last = PrepareAbort, x.now.UnixMilli(), last
	x.noteFenced(t, q, kind, v.told())
	x.write(t.id, v)
	x.sendMarkers(t)
	return true
}

// gave answers with the producer that a client has from now on.
func (x *step) gave(q *question, m *kmsg.InitProducerIDRequest, t *txn) {
	t.clientID, t.host, t.operators, t.taker = q.clientID, q.host, takes(q, m) == journal.TxnOperator, nil
	if t.notes != nil {
		t.notes.refusals = 0
	}
	x.answerInit(q, m, nil, t.hard.Producer)
}

func (x *step) answerInit(q *question, m *kmsg.InitProducerIDRequest, err *kerr.Error, p pair) {
	resp := kmsg.NewPtrInitProducerIDResponse()
	resp.Version, resp.ErrorCode = m.Version, codeFor(m, err)
	resp.ProducerID, resp.ProducerEpoch = p.id, p.epoch
	x.reply(q.request, resp)
}

// codeFor is the code of an error in a version of a request: PRODUCER_FENCED came
// late, and was INVALID_PRODUCER_EPOCH before.
func codeFor(m kmsg.Request, err *kerr.Error) int16 {
	knows := int16(2)
	if _, ok := m.(*kmsg.InitProducerIDRequest); ok {
		knows = 4
	}
	switch {
	case err == nil:
		return 0
	case err == kerr.ProducerFenced && m.GetVersion() < knows:
		return kerr.InvalidProducerEpoch.Code
	}
	return err.Code
}
