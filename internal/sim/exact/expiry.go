package exact

import (
	"time"

	"muster/internal/store"
)

// longestDelay is longer than anything takes to arrive that was sent once. A
// partition must know a producer for at least that long: below version 2 of
// transactions nothing but its sequence numbers tells a batch that comes twice from
// one of the next transaction, in Kafka too.
const longestDelay = 28 * time.Second

// expired is a tombstone of a transactional id: it was at rest, and for long enough.
func (m *model) expired(id string, s *idState) {
	w := m.w
	w.Tracef("%s: expires", id)
	switch {
	case s.value == nil:
		w.judge("%s expires, but there is no such id", id)
	case !resting(s.value):
		w.judge("%s expires in state %s", id, stateNames[s.value.State])
	case w.plan.expiry.ids == 0 || w.Clock().Sub(time.UnixMilli(s.value.LastUpdateTimestamp)) < w.plan.expiry.ids-2*maxSkew:
		w.judge("%s expires %s after its last use", id, w.Clock().Sub(time.UnixMilli(s.value.LastUpdateTimestamp)))
	}
	w.Count("transactional id expired")
	s.value, s.gone = nil, w.Now
	s.fence = 0 // Whoever comes first is the next.
}

// idle takes in which producers a partition knows still: all that have something open,
// at least. What others have told it, it cannot hold against them any more.
func (m *model) idle(tp store.TopicPartition, before, known []store.Producer) {
	left := map[int64]bool{}
	for _, x := range known {
		left[x.ID] = true
	}
	for _, x := range before {
		if x.TxnFirst != store.NoTxn && !left[x.ID] {
			m.w.Violated("%v: producer %d expires in a transaction", tp, x.ID)
		}
	}
	p := m.part(tp)
	for pid := range p.epochs {
		if !left[pid] && p.open[pid] == nil {
			m.w.Count("producer id expired in a partition")
			m.idled[idleKey{tp, pid}] = true
			delete(p.epochs, pid)
			delete(p.coords, pid)
		}
	}
}

// idleKey is a producer in a partition.
type idleKey struct {
	tp  store.TopicPartition
	pid int64
}

// cameBack counts producers that come back after they were forgotten.
func (m *model) cameBack(l *simLog, e *entry) {
	k := idleKey{l.tp, e.batch.ProducerID()}
	if m.idled[k] && e.marker == nil {
		m.w.Count("producer comes back after it expired in a partition")
		delete(m.idled, k)
	}
}
