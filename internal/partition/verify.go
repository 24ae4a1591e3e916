package partition

import (
	"bytes"
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/metadata"
	"muster/internal/metadata/config"
	"muster/internal/record"
	"muster/internal/store"
)

// TxnCoordinator is asked before the first batch of a transaction, so that no
// batch comes into the log that no marker will follow (KIP-890).
type TxnCoordinator interface {
	// Ask asks whether a partition is in a producer's transaction. It does not
	// wait: done is called once, never from within Ask, and by a goroutine that may
	// wait for the log.
	Ask(q TxnQuestion, done func(TxnAnswer))
}

// TxnQuestion is what a coordinator is asked.
type TxnQuestion struct {
	TransactionalID string
	ProducerID      int64
	ProducerEpoch   int16
	Topic           string
	TopicID         metadata.TopicID // tells it from one of the same name before or after
	Partition       int32
	Add             bool // the partition to the transaction, instead of only looking
}

// TxnAnswer is what it answers.
type TxnAnswer struct {
	Err   *kerr.Error // nil if the partition is in the transaction
	Start int64       // of the transaction, in milliseconds; NoStart if it is not known
	// Run is the run of the store's server in which the coordinator knows that.
	Run string
}

const (
	// addsFrom is the version of Produce from which on producers do not add
	// partitions to their transactions themselves.
	addsFrom = 12
	// askAgain is how often a coordinator is asked that is busy with the
	// transaction before, and askFor is for how long. Producers wait for longer
	// before they try again.
	askAgain = 20 * time.Millisecond
	askFor   = 100 * time.Millisecond
)

// verify appends a batch of a transaction, after the coordinator was asked if need
// be. Batches of a producer that come meanwhile wait behind the first.
func (p *Partition) verify(ctx context.Context, b record.Batch, now int64, how Produce, r request) {
	switch {
	case how.TransactionalID == "":
		r.done(refused(kerr.TransactionalIDAuthorizationFailed, "a transactional batch needs a transactional id"))
		return
	case !p.transactional():
		r.done(refused(kerr.UnsupportedForMessageFormat, "transactions need muster.redis.layout="+config.TransactionalLayout))
		return
	case p.deps.coordinator == nil:
		r.done(refused(kerr.InvalidTxnState, "transactions are not supported yet"))
		return
	}
	r.adds = how.Version >= addsFrom
	q, fresh, err := p.park(ctx, b, now, how, r)
	switch {
	case err != nil:
		r.done(refused(err, ""))
	case q == nil:
		p.put(ctx, b, now, r)
	case fresh:
		p.ask(q)
	}
}

// park lets a batch wait if the coordinator must be asked first, or is being
// asked. Fresh says that the question is new.
func (p *Partition) park(ctx context.Context, b record.Batch, now int64, how Produce, r request) (q *question, fresh bool, err *kerr.Error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, false, kerr.NotLeaderForPartition
	}
	if p.mustReopen() {
		if err := p.openAgain(ctx); err != nil {
			return nil, false, p.wireError("open", err)
		}
	}
	key := questionKey{b.ProducerID(), b.ProducerEpoch(), how.TransactionalID, r.adds}
	if q = p.questions.asked[key]; q != nil && q.stale() {
		q = nil
	}
	if q == nil && !p.mustAsk(b) {
		return nil, false, nil
	}
	w := &parked{ctx: ctx, batch: bytes.Clone(b), now: now, version: how.Version, request: r}
	if !p.reserve(w.size()) {
		return nil, false, kerr.NotEnoughReplicas // Producers try again.
	}
	if fresh = q == nil; fresh {
		q = p.questions.add(key, p.deps.now())
	}
	q.waiting = append(q.waiting, w)
	if x := p.producers[key.producer]; x == nil || x.Epoch == key.epoch && len(x.Batches) == 0 {
		p.questions.lowerTo(b, p.deps.now())
	}
	return q, fresh, nil
}

// mustAsk says whether the coordinator must be asked about a batch: not if it is a
// repeat or of an old epoch, which is told without asking (KAFKA-19690), nor if the
// transaction is open.
func (p *Partition) mustAsk(b record.Batch) bool {
	x := p.producers[b.ProducerID()]
	switch {
	case x == nil || x.Epoch < b.ProducerEpoch():
		return true
	case x.Epoch > b.ProducerEpoch():
		return false
	}
	return (x.TxnFirst == store.NoTxn || p.isOlderThanRun(x)) && batchOf(x, b) == nil
}

func (p *Partition) ask(q *question) {
	q.asked++
	p.deps.coordinator.Ask(TxnQuestion{
		TransactionalID: q.key.id, ProducerID: q.key.producer, ProducerEpoch: q.key.epoch,
		Topic: p.topic, TopicID: p.topicID, Partition: p.index, Add: q.key.add,
	}, func(a TxnAnswer) { p.answered(q, a) })
}

// answered takes the coordinator's answer, and appends what waits. Where an append
// waits for its turn, because the store is far away, a goroutine of its own does that:
// other partitions may have been answered together with this one.
func (p *Partition) answered(q *question, a TxnAnswer) {
	if a.Err == kerr.ConcurrentTransactions && q.key.add && q.asked <= int(askFor/askAgain) && p.deps.now().Sub(q.began)+askAgain <= askFor {
		p.deps.later(askAgain, func() {
			p.mu.Lock()
			// What ended before we ask again was the transaction before.
			q.guard = newGuard(q.guard.lost)
			p.mu.Unlock()
			p.ask(q)
		})
		return
	}
	switch {
	case a.Err == nil && p.pipelined:
		p.deps.later(0, func() { p.release(q, a) })
		return
	case a.Err == nil:
		p.release(q, a)
		return
	}
	p.mu.Lock()
	waiting := q.waiting
	q.waiting = nil
	p.questions.remove(q)
	p.mu.Unlock()
	for _, w := range waiting {
		p.unreserve(w.size())
		w.done(refused(told(a.Err, w.version), "the transaction coordinator says "+a.Err.Message))
	}
}

// release appends what waited, in order, and what comes to wait meanwhile.
func (p *Partition) release(q *question, a TxnAnswer) {
	for {
		p.mu.Lock()
		q.answered, q.start = true, a.Start
		if p.isOtherRun(a.Run) {
			q.guard.lost = true // One of us has not noticed that the store is another one.
		}
		if len(q.waiting) == 0 {
			p.questions.remove(q)
			p.mu.Unlock()
			return
		}
		w := q.waiting[0]
		q.waiting[0] = nil
		q.waiting = q.waiting[1:]
		p.mu.Unlock()
		p.unreserve(w.size())
		w.asked = q
		p.put(w.ctx, w.batch, w.now, w.request)
	}
}

// told is how a producer is told what the coordinator answered. Older ones know
// fewer errors, and what passes by itself must look like something they retry.
func told(err *kerr.Error, version int16) *kerr.Error {
	switch err {
	case kerr.TransactionAbortable:
		if version <= 10 {
			return kerr.InvalidTxnState
		}
	case kerr.ProducerFenced:
		return kerr.InvalidProducerEpoch
	case kerr.ConcurrentTransactions:
		if version < addsFrom {
			return kerr.NotEnoughReplicas
		}
	case kerr.CoordinatorLoadInProgress, kerr.CoordinatorNotAvailable, kerr.NotCoordinator, kerr.NetworkException,
		kerr.RequestTimedOut, kerr.OperationNotAttempted:
		return kerr.NotEnoughReplicas
	}
	return err
}

// checkTxn decides whether a batch fits the transaction that its producer has open
// here, or may begin one.
func (p *Partition) checkTxn(x *store.Producer, b record.Batch, t *terms) *kerr.Error {
	open := x != nil && x.TxnFirst != store.NoTxn
	switch {
	case !b.Transactional() && !open:
		return nil
	case !b.Transactional():
		return kerr.InvalidTxnState
	case open && x.Epoch == b.ProducerEpoch() && p.isOlderThanRun(x):
		return kerr.NotLeaderForPartition // Its end is on its way, and would be this batch's too.
	case open && x.Epoch == b.ProducerEpoch():
		return nil
	case open:
		return kerr.InvalidTxnState // Whatever ends it would end this batch's too.
	case t.asked == nil:
		return kerr.NotLeaderForPartition // It was open a moment ago. The next attempt asks.
	}
	return t.asked.verdict()
}

// isOlderThanRun says whether a producer's transaction was open here when the store's server
// was started. Its marker may be among what that has lost, and the producer be in the next
// transaction of the same epoch since.
func (p *Partition) isOlderThanRun(x *store.Producer) bool { return x.TxnFirst < p.run.Began }
