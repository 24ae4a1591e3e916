package txn

import (
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/machine"
)

// endPatience is how long a request waits for a transaction to end. Most end
// sooner, and a client that is told CONCURRENT_TRANSACTIONS waits for longer.
const endPatience = 100 * time.Millisecond

func waitKey(t *txn) machine.TimerKey { return machine.TimerKey{Kind: TimerWait, ID: t.id} }

// wait has a question wait for the end of a transaction. One that has waited
// before, for the transaction before this one, is not given more time.
func (x *step) wait(t *txn, q *question) {
	if q.endBy.IsZero() {
		q.endBy = x.now.Add(endPatience)
	}
	if len(t.ending.waiting) >= maxWaiting || !q.endBy.After(x.now) {
		x.refuse(q, kerr.ConcurrentTransactions)
		return
	}
	t.ending.waiting = append(t.ending.waiting, *q)
	x.armWait(t)
}

// armWait arms the timer for those who wait, if there are any.
func (x *step) armWait(t *txn) {
	if next := earliest(t.ending.waiting, question.endsBy); !next.IsZero() {
		t.ending.waitTimer = x.arm(waitKey(t), next)
	}
}

// waitFired turns those away who have waited for too long.
func (x *step) waitFired(t *txn) {
	e := t.ending
	e.waitTimer = 0
	e.waiting = x.turnAway(e.waiting, question.endsBy, kerr.ConcurrentTransactions)
	x.armWait(t)
}

func (q question) endsBy() time.Time  { return q.endBy }
func (q question) hasIDBy() time.Time { return q.idBy }

// turnAway refuses those whose time is over, and returns the others.
func (x *step) turnAway(waiting []question, by func(question) time.Time, err *kerr.Error) []question {
	var rest []question
	for i := range waiting {
		if by(waiting[i]).After(x.now) {
			rest = append(rest, waiting[i])
			continue
		}
		x.refuse(&waiting[i], err)
	}
	return rest
}

// earliest is when the first of them has waited for too long.
func earliest(waiting []question, by func(question) time.Time) (at time.Time) {
	for i := range waiting {
		if until := by(waiting[i]); at.IsZero() || until.Before(at) {
			at = until
		}
	}
	return at
}

// goOn handles what has waited for the end of a transaction, in order.
func (x *step) goOn(t *txn, e *ending) {
	if e.waitTimer != 0 {
		x.cancel(waitKey(t))
	}
	for i := range e.waiting {
		x.ask(&e.waiting[i])
	}
}

// refuse answers a question with an error.
func (x *step) refuse(q *question, err *kerr.Error) {
	switch m := q.msg.(type) {
	case *kmsg.InitProducerIDRequest:
		x.answerInit(q, m, err, noPair)
	case *kmsg.AddPartitionsToTxnRequest:
		x.answerPartitions(q, m, result{err: err})
	case *kmsg.AddOffsetsToTxnRequest:
		x.answerOffsets(q, m, err)
	case *kmsg.EndTxnRequest:
		x.answerEnd(q, m, err, noPair)
	}
}
