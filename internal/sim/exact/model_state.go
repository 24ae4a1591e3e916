package exact

import (
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/store"
)

// States as the records have them.
const (
	stateEmpty          = 0
	stateOngoing        = 1
	statePrepareCommit  = 2
	statePrepareAbort   = 3
	stateCompleteCommit = 4
	stateCompleteAbort  = 5
)

var stateNames = []string{"Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort"}

// String names a transaction for people.
func (t *transaction) String() string {
	if t == nil {
		return "none"
	}
	how := "open"
	if t.decided {
		how = map[bool]string{true: "committed", false: "aborted"}[t.commit]
	}
	return fmt.Sprintf("%s transaction %d of %d/%d, %s", t.id, t.number, t.pid, t.epoch, how)
}

// resting says whether a state is one of no transaction.
func resting(v *kmsg.TxnMetadataValue) bool {
	return v == nil || v.State == stateEmpty || v.State == stateCompleteCommit || v.State == stateCompleteAbort
}

// stateRecord takes in a durable record of a transaction coordinator, and holds it
// against the one before.
func (m *model) stateRecord(key, value []byte, _ int64) {
	w := m.w
	var k kmsg.TxnMetadataKey
	if err := k.ReadFrom(key); err != nil {
		w.judge("a key of %s cannot be read: %v", stateTopic, err)
	}
	s := m.id(k.TransactionalID)
	if value == nil {
		m.expired(k.TransactionalID, s)
		return
	}
	v := &kmsg.TxnMetadataValue{}
	if err := v.ReadFrom(value); err != nil {
		w.judge("a value of %s cannot be read: %v", stateTopic, err)
	}
	w.Tracef("%s: %s, producer %d/%d, previous %d, next %d, start %d, %v", k.TransactionalID, stateNames[v.State], v.ProducerID, v.ProducerEpoch, v.PreviousProducerID, v.NextProducerID, v.StartTimestamp, v.Topics)
	w.Count("state " + stateNames[v.State])
	if w.void {
		s.value, m.owners[v.ProducerID] = v, k.TransactionalID
		return
	}
	m.checkProducer(k.TransactionalID, s.value, v)
	m.transition(k.TransactionalID, s, v)
	s.value = v
	s.pairs[pair{v.ProducerID, v.ProducerEpoch}] = true
	if v.NextProducerID >= 0 {
		s.pairs[pair{v.NextProducerID, 0}] = true
	}
}

// checkProducer: no producer id belongs to two ids, and epochs do not go back.
func (m *model) checkProducer(id string, prev, v *kmsg.TxnMetadataValue) {
	w := m.w
	if owner, ok := m.owners[v.ProducerID]; ok && owner != id {
		w.judge("producer %d belongs to %s and to %s", v.ProducerID, owner, id)
	}
	_, known := m.owners[v.ProducerID]
	m.owners[v.ProducerID] = id
	switch {
	case prev == nil && known:
		w.judge("%s begins with producer %d, which there was before", id, v.ProducerID)
	case prev == nil:
	case prev.ProducerID == v.ProducerID:
		if v.ProducerEpoch < prev.ProducerEpoch || v.ProducerEpoch > prev.ProducerEpoch+1 {
			w.judge("%s: producer epoch %d after %d", id, v.ProducerEpoch, prev.ProducerEpoch)
		}
	case known || v.ProducerEpoch != 0:
		w.judge("%s: producer %d/%d after %d/%d", id, v.ProducerID, v.ProducerEpoch, prev.ProducerID, prev.ProducerEpoch)
	default:
		w.Count("producer id rotated")
	}
}

// transition checks that a state may follow the one before.
func (m *model) transition(id string, s *idState, v *kmsg.TxnMetadataValue) {
	w, prev := m.w, s.value
	from := "nothing"
	if prev != nil {
		from = stateNames[prev.State]
	}
	ok := false
	switch v.State {
	case stateEmpty:
		ok = resting(prev)
	case stateOngoing:
		if ok = resting(prev) && prev != nil; ok {
			s.begin(id, v, w.Now)
		} else if ok = prev != nil && prev.State == stateOngoing; ok && (v.StartTimestamp != prev.StartTimestamp || v.ProducerEpoch != prev.ProducerEpoch) {
			w.judge("%s: %v changes start or epoch", id, s.cur)
		}
		m.grow(s.cur, v)
	case statePrepareCommit, statePrepareAbort:
		ok = m.prepare(id, s, v)
	case stateCompleteCommit, stateCompleteAbort:
		if ok = prev != nil && prev.State == v.State-2; ok {
			m.complete(s.cur)
		}
	}
	if !ok {
		w.judge("%s becomes %s after %s", id, stateNames[v.State], from)
	}
}

func (s *idState) begin(id string, v *kmsg.TxnMetadataValue, now time.Duration) {
	s.cur = &transaction{
		number: len(s.all), id: id, pid: v.ProducerID, epoch: v.ProducerEpoch, start: v.StartTimestamp,
		began: now,
		parts: map[store.TopicPartition]bool{}, closed: map[store.TopicPartition]bool{}, told: map[store.TopicPartition]bool{},
	}
	s.all = append(s.all, s.cur)
}

// grow notes the partitions of a transaction, which become more.
func (m *model) grow(t *transaction, v *kmsg.TxnMetadataValue) {
	had, has := len(t.parts), 0
	for _, topic := range v.Topics {
		for _, p := range topic.Partitions {
			has++
			t.parts[store.TopicPartition{Topic: topic.Topic, Partition: p}] = true
		}
	}
	if has != len(t.parts) || has < had {
		m.w.judge("%v has %d partitions, had %d", t, has, had)
	}
}

// prepare notes what was decided about a transaction; that is never changed.
func (m *model) prepare(id string, s *idState, v *kmsg.TxnMetadataValue) bool {
	prev := s.value
	switch {
	case prev == nil:
		return false
	case prev.State == v.State:
		m.w.Count("decision written again")
		return prev.ProducerID == v.ProducerID && prev.ProducerEpoch == v.ProducerEpoch
	case resting(prev) && v.State == statePrepareAbort:
		m.w.Count("empty abort")
		s.begin(id, v, m.w.Now)
		s.cur.pid, s.cur.epoch = prev.ProducerID, prev.ProducerEpoch
	case prev.State != stateOngoing || v.ProducerID != prev.ProducerID:
		return false
	}
	s.cur.decided, s.cur.commit, s.cur.markers = true, v.State == statePrepareCommit, v.ProducerEpoch
	m.grow(s.cur, v)
	return true
}

// complete: all partitions of a transaction have its marker, and nothing of it is
// open.
func (m *model) complete(t *transaction) {
	for tp := range t.parts {
		if m.torn(t, tp) {
			continue
		}
		if o := m.part(tp).open[t.pid]; o != nil {
			m.w.judge("%v is complete, but open in %v", t, tp)
		}
		if !t.told[tp] {
			m.w.judge("%v is complete without an acknowledged marker in %v", t, tp)
		}
	}
}
