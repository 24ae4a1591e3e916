package sim

import (
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/machine"
	"muster/internal/metadata"
)

// txnState is where a transaction stands at its coordinator.
type txnState int

const (
	txnIdle txnState = iota
	txnOngoing
	txnPreparing // its end is decided, and the marker on its way
)

// transaction is a simple model of the coordinator of one transactional id: it
// never forgets, but is replaced now and then, and its markers come late, twice,
// or long after their time.
type transaction struct {
	peer
	id          string
	producer    int64
	epoch       int16
	tv2         bool // version 2 of transactions: each has an epoch of its own
	coordinator int32
	state       txnState
	start       int64          // of the last one
	added       bool           // the group's partition is part of it
	fates       map[int64]bool // by start, whether it was committed
	void        int64          // up to this start, the log may have lost anything
	acked       map[offsetKey]uint64
	waiting     []func() // questions that wait for the end
}

// marker is one that a coordinator sends.
type marker struct {
	start       int64
	epoch       int16
	commit      bool
	coordinator int32
}

// begin begins a transaction unless one is under way.
func (t *transaction) begin() {
	if t.state != txnIdle {
		return
	}
	t.state, t.added = txnOngoing, false
	t.start = max(t.start+1, t.w.millis())
	t.acked = map[offsetKey]uint64{}
	t.w.Count("transaction begun")
}

// end decides a transaction; fence takes an epoch of its own for that in any
// version.
func (t *transaction) end(commit, fence bool) {
	if t.state != txnOngoing {
		return
	}
	if t.tv2 || fence {
		t.epoch++
	}
	t.fates[t.start] = commit
	t.state = txnPreparing
	t.w.Tracef("%s: decides %d/%d, begun at %d, commit %t", t.id, t.producer, t.epoch, t.start, commit)
	if !t.added {
		t.complete()
		return
	}
	t.send(marker{t.start, t.epoch, commit, t.coordinator}, true)
}

// replaced has another broker coordinate: it sends what was not acknowledged once
// more, while the old one goes on.
func (t *transaction) replaced() {
	t.coordinator++
	t.w.Count("transaction coordinator replaced")
	if t.state == txnPreparing && t.added {
		t.send(marker{t.start, t.epoch, t.fates[t.start], t.coordinator}, true)
	}
}

// send sends a marker, again and again until it is acknowledged.
func (t *transaction) send(m marker, again bool) {
	req := kmsg.NewPtrWriteTxnMarkersRequest()
	req.Version = 2
	e := kmsg.NewWriteTxnMarkersRequestMarker()
	e.ProducerID, e.ProducerEpoch, e.Committed, e.CoordinatorEpoch = t.producer, m.epoch, m.commit, m.coordinator
	if t.tv2 {
		e.TransactionVersion = 2
	}
	machine.TxnStart(m.start).Set(&e.UnknownTags)
	e.Topics = []kmsg.WriteTxnMarkersRequestMarkerTopic{{Topic: metadata.OffsetsTopic, Partitions: []int32{0}}}
	req.Markers = append(req.Markers, e)
	t.call(req, noWait, func(a answer) { t.sent(m, again, a) })
}

func (t *transaction) sent(m marker, again bool, a answer) {
	w := t.w
	code := int16(codeNotLeader)
	if a.msg != nil {
		code = codeOf(a.msg)
	}
	switch code {
	case 0, codeInvalidEpoch: // It can only mean that it has ended there.
		t.acknowledged(m)
	case codeCoordinatorFenced:
		if m.coordinator == t.coordinator {
			w.Violated("%s: its marker %+v is fenced", t.id, m)
		}
	case codeNotLeader:
		if a.msg != nil {
			t.hangUp()
		}
		if again && (t.state == txnPreparing && t.start == m.start || w.Rand.IntN(2) == 0 && !w.Calm) {
			t.after(w.Between(5*time.Millisecond, 200*time.Millisecond), func() { t.send(m, true) })
		}
	default:
		w.Violated("%s: its marker %+v is answered with %d", t.id, m, code)
	}
}

// acknowledged is the end of a transaction. Its marker may come once more, much
// later.
func (t *transaction) acknowledged(m marker) {
	w := t.w
	if t.state == txnPreparing && t.start == m.start {
		t.checkVisible()
		t.complete()
	}
	if w.Chance(w.faults().lateMarker) {
		t.after(w.About(5*time.Second), func() {
			if !w.Calm {
				w.Count("marker sent once more")
				t.send(m, false)
			}
		})
	}
}

func (t *transaction) complete() {
	t.state = txnIdle
	waiting := t.waiting
	t.waiting = nil
	for _, run := range waiting {
		run()
	}
}

// checkVisible checks that what was acknowledged and is committed can be read, or
// something newer.
func (t *transaction) checkVisible() {
	if !t.fates[t.start] || t.start <= t.void {
		return
	}
	for k, pos := range t.acked {
		if got := t.w.log.offsets.byKey[k]; got.pos < pos {
			t.w.Violated("%s: %v was committed in the transaction begun at %d, and is %+v", t.id, k, t.start, got)
		}
		t.w.Count("offset committed in a transaction")
	}
}

// checkFates checks, when a marker is in the log, that its transaction ended so.
func (w *world) checkFates(end *txnWrite, pending map[offsetKey]committed) {
	for _, c := range w.copiers {
		t := &c.txn
		if t.producer != end.producer {
			continue
		}
		for k, val := range pending {
			commit, decided := t.fates[val.start]
			switch {
			case val.start <= t.void:
			case !decided:
				w.Violated("%s: %v of the transaction begun at %d is ended by %+v, before that is decided", t.id, k, val.start, *end)
			case commit != end.commit:
				w.Violated("%s: %v of the transaction begun at %d is ended by %+v, though commit is %t", t.id, k, val.start, *end, commit)
			case t.tv2 && val.epoch >= 0 && val.metadata != "" && val.metadata != t.note(val.start):
				w.Violated("%s: %v was meant for %s, and is part of %s", t.id, k, val.metadata, t.note(val.start))
			}
		}
	}
}

// question has a transaction's coordinator answer a shard.
func (w *world) question(c *coordinator, s machine.Send) {
	req := s.Msg.(*kmsg.AddPartitionsToTxnRequest)
	life := c.life
	tell := func(out machine.Sent) {
		back := w.networkDelay()
		w.underWay(w.Now + back)
		w.After(back, func() { c.host.Do(func() { c.host.Sent(life, out) }) })
	}
	arrival := w.networkDelay()
	w.underWay(w.Now + arrival)
	w.After(arrival, func() {
		switch {
		case w.Chance(w.faults().cut * 3):
			w.Count("question lost")
			w.After(w.Between(0, 15*time.Second), func() { tell(machine.Sent{ID: s.ID, Err: errors.New("lost")}) })
		default:
			w.copierOf(req.Transactions[0].TransactionalID).txn.ask(req, func(code int16, start int64) {
				tell(machine.Sent{ID: s.ID, Msg: txnAnswer(req, code, start)})
			})
		}
	})
}

// ask answers a question of a shard. While a transaction is about to end, it waits
// a little for that.
func (t *transaction) ask(req *kmsg.AddPartitionsToTxnRequest, tell func(code int16, start int64)) {
	q := &req.Transactions[0]
	switch {
	case q.ProducerEpoch != t.epoch:
		tell(codeProducerFenced, 0)
	case t.state == txnPreparing && t.w.Rand.IntN(2) == 0:
		tell(codeConcurrent, 0)
	case t.state == txnPreparing:
		over := false
		t.waiting = append(t.waiting, func() {
			if !over {
				over = true
				t.ask(req, tell)
			}
		})
		t.w.After(100*time.Millisecond, func() {
			if !over {
				over = true
				tell(codeConcurrent, 0)
			}
		})
	case q.VerifyOnly && (t.state != txnOngoing || !t.added):
		tell(codeAbortable, 0)
	default:
		if !q.VerifyOnly {
			t.begin()
			t.added = true
		}
		tell(0, t.start)
	}
}

func txnAnswer(req *kmsg.AddPartitionsToTxnRequest, code int16, start int64) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.AddPartitionsToTxnResponse)
	q := req.Transactions[0]
	p := kmsg.AddPartitionsToTxnResponseTransactionTopicPartition{Partition: q.Topics[0].Partitions[0], ErrorCode: code}
	if start > 0 {
		machine.TxnStart(start).Set(&p.UnknownTags)
	}
	topic := kmsg.AddPartitionsToTxnResponseTransactionTopic{Topic: q.Topics[0].Topic, Partitions: []kmsg.AddPartitionsToTxnResponseTransactionTopicPartition{p}}
	resp.Transactions = []kmsg.AddPartitionsToTxnResponseTransaction{{TransactionalID: q.TransactionalID, Topics: []kmsg.AddPartitionsToTxnResponseTransactionTopic{topic}}}
	return resp
}

// resolve ends what is open in the log though its coordinator knows nothing of it,
// as after the loss of a tail.
func (t *transaction) resolve() {
	p := t.w.log.offsets.producers[t.producer]
	if !p.open || t.state != txnIdle && t.start == p.start {
		return
	}
	if p.start > t.void {
		t.w.Violated("%s: a transaction begun at %d is open in the log, and over", t.id, p.start)
	}
	t.w.Count("orphan resolved")
	m := marker{start: p.start, epoch: p.epoch, coordinator: t.coordinator}
	if t.tv2 {
		m.epoch++
		t.epoch = max(t.epoch, m.epoch)
	}
	t.send(m, false)
}
