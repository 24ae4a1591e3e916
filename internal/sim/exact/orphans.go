package exact

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/machine"
	"muster/internal/partition"
	"muster/internal/store"
)

// orphanPatience is how long a transaction may be open before a leader asks whether
// its coordinator still knows it.
const orphanPatience = maxTimeout + 5*time.Second

// orphan is a transaction that may be one.
type orphan struct {
	tp store.TopicPartition
	partition.OpenTxn
}

// resolve looks for transactions that no coordinator knows, as brokers do from time
// to time, and aborts them.
func (b *broker) resolve() {
	var overdue []orphan
	for _, tp := range b.w.partitions() {
		p := b.manager.Get(tp.Topic, tp.Partition)
		if leaderOf(b.image, tp) != b.id || p == nil {
			continue
		}
		for _, o := range p.OpenTxns() {
			if !o.Since.After(b.clock().Add(-orphanPatience)) {
				overdue = append(overdue, orphan{tp, o})
			}
		}
	}
	if len(overdue) == 0 {
		return
	}
	b.w.Count("transaction open for long")
	led := b.image.Topic(stateTopic).Partitions
	b.askOngoing(b.w.txnIDs, map[ongoing]bool{}, func(known map[ongoing]bool) {
		if !slices.Equal(led, b.image.Topic(stateTopic).Partitions) {
			return
		}
		for _, o := range overdue {
			if !known[ongoing{o.ProducerID, o.tp}] {
				b.abort(o)
			}
		}
	})
}

// ongoing names a transaction in a partition.
type ongoing struct {
	producer int64
	tp       store.TopicPartition
}

// askOngoing asks the coordinators of all ids what goes on, one after the other, and
// goes on only if all of them know.
func (b *broker) askOngoing(left []string, known map[ongoing]bool, done func(map[ongoing]bool)) {
	if len(left) == 0 {
		done(known)
		return
	}
	req := kmsg.NewPtrDescribeTransactionsRequest()
	req.TransactionalIDs = []string{left[0]}
	life := b.life
	b.w.send(message{from: b.name(), to: b.w.coordinator(b.image, stateTopic, left[0]), body: req, timeout: peerTimeout}, func(answer any) {
		resp, ok := answer.(*kmsg.DescribeTransactionsResponse)
		if !ok {
			return
		}
		t := resp.TransactionStates[0]
		if t.ErrorCode != 0 && t.ErrorCode != kerr.TransactionalIDNotFound.Code {
			return
		}
		if t.State == "Ongoing" || strings.HasPrefix(t.State, "Prepare") {
			for _, topic := range t.Topics {
				for _, p := range topic.Partitions {
					known[ongoing{t.ProducerID, store.TopicPartition{Topic: topic.Topic, Partition: p}}] = true
				}
			}
		}
		b.do(life, func() { b.askOngoing(left[1:], known, done) })
	})
}

// abort aborts an orphan.
func (b *broker) abort(o orphan) {
	w := b.w
	w.Tracef("broker %d: %d/%d at %d of %v is an orphan", b.id, o.ProducerID, o.ProducerEpoch, o.FirstOffset, o.tp)
	w.Count("orphan aborted")
	if l := w.store.log(o.tp); l.owner != nil && l.owner.b == b && l.owner.life == b.life {
		w.model.checkOrphan(o) // The append of a leader that was deposed is refused.
	}
	p := b.manager.Get(o.tp.Topic, o.tp.Partition)
	switch {
	case p == nil:
	case o.tp.Topic == offsetsTopic && !slices.ContainsFunc(p.OpenTxns(), func(t partition.OpenTxn) bool { return t.FirstOffset == o.FirstOffset }):
		// It has ended meanwhile.
	case o.tp.Topic == offsetsTopic:
		m := kmsg.NewWriteTxnMarkersRequestMarker()
		m.ProducerID, m.ProducerEpoch, m.CoordinatorEpoch = o.ProducerID, o.ProducerEpoch, -1
		machine.TxnStart(o.Start).Set(&m.UnknownTags)
		b.groupMarker(2, &m, o.tp, func(int16) {})
	default:
		p.AbortOrphan(context.Background(), o.OpenTxn, func(*kerr.Error) {})
	}
}

// checkOrphan: nothing that its coordinator will end is taken for an orphan.
func (m *model) checkOrphan(o orphan) {
	v := m.id(m.owners[o.ProducerID]).value
	x := m.part(o.tp).open[o.ProducerID]
	if x == nil || x.first != o.FirstOffset {
		m.w.Count("orphan that has ended meanwhile")
		return // Nothing is written then.
	}
	if !m.w.void && m.torn(x.t, o.tp) {
		m.w.Count("orphan in a topic that was made anew")
		return
	}
	if !m.w.void {
		m.w.Violated("%v: %d/%d is taken for an orphan, though nothing was lost", o.tp, o.ProducerID, o.ProducerEpoch)
	}
	if resting(v) || v.ProducerID != o.ProducerID || v.State == statePrepareAbort {
		return // What is aborted either way may be anybody's.
	}
	for _, t := range v.Topics {
		if t.Topic == o.tp.Topic && slices.Contains(t.Partitions, o.tp.Partition) && v.StartTimestamp < m.w.Clock().Add(-orphanPatience).UnixMilli() {
			m.w.Violated("%v: %d/%d is taken for an orphan, though its coordinator knows it", o.tp, o.ProducerID, o.ProducerEpoch)
		}
	}
}

// loseState has a log of transaction coordinators come back without its last
// batches, though they were durable. From then on nothing is certain but that all
// comes to rest.
func (w *world) loseState() {
	l := w.store.log(store.TopicPartition{Topic: stateTopic, Partition: w.Rand.Int32N(w.plan.states)})
	to := w.someoneUp()
	if l.packed || l.durable < 6 || to == nil {
		return
	}
	w.Count("state lost")
	w.void = true
	l.durable -= 1 + w.Rand.IntN(5)
	l.owner = nil
	l.cut(l.durable)
	for _, s := range w.model.ids {
		s.value = nil
	}
	for i := range w.plan.states {
		l := w.store.log(store.TopicPartition{Topic: stateTopic, Partition: i})
		for _, e := range l.raw[:l.durable] {
			w.model.eachRecord(e, w.model.stateRecord)
		}
	}
	w.elect(map[store.TopicPartition]int32{l.tp: to.id})
}
