package group

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"muster/internal/group/kind"
	"muster/internal/group/subscription"
	"muster/internal/machine"
)

// producer is what a shard knows of a transactional producer.
type producer struct {
	id               int64
	epoch            int16 // of its last record or marker here
	coordinatorEpoch int32 // of the last marker, -1 if there was none
	open             *openTxn
	ended            machine.TxnStart // of the transaction that the last marker ended, zero if not known
	seen             time.Time
	order            uint64 // it was seen later than one whose number is lower
}

// openTxn is a transaction that has written here and has not ended.
type openTxn struct {
	start   machine.TxnStart // zero if not known
	id      string           // the transactional id, empty if it was loaded
	offsets map[offsetKey]struct{}
}

// offsetKey is what an offset is committed for.
type offsetKey struct {
	group string
	subscription.TopicPartition
}

// How many producers without an open transaction a shard remembers, and for how
// long. Kafka remembers them for a day (producer.id.expiration.ms), as many as
// come. What is forgotten is the epoch: the transaction coordinator, which is asked
// before a transaction opens here, knows it too.
const (
	maxIdleProducers  = 10_000
	producerRetention = 24 * time.Hour
)

// txns is what a shard knows of transactions.
type txns struct {
	producers map[int64]*producer
	limit     int    // of them, at which the idle ones are looked through
	order     uint64 // of the producer that was last seen
	parked    parked
}

func newTxns() txns {
	return txns{producers: map[int64]*producer{}, limit: maxIdleProducers, parked: newParked()}
}

// see returns the producer of that id, which is heard of now.
func (t *txns) see(id int64, now time.Time) *producer {
	p := t.producers[id]
	if p == nil {
		if len(t.producers) >= t.limit {
			t.forgetOldest()
		}
		p = &producer{id: id, coordinatorEpoch: -1}
		t.producers[id] = p
	}
	t.order++
	p.seen, p.order = now, t.order
	return p
}

// forgetOldest forgets half of the idle producers, those that were not heard of
// for longest.
func (t *txns) forgetOldest() {
	idle := t.idle()
	slices.SortFunc(idle, func(a, b *producer) int { return cmp.Compare(a.order, b.order) })
	for _, p := range idle[:(len(idle)+1)/2] {
		delete(t.producers, p.id)
	}
	t.limit = max(maxIdleProducers, 2*len(t.producers))
}

// sweep forgets producers that were not heard of for long.
func (t *txns) sweep(now time.Time) {
	for _, p := range t.idle() {
		if now.Sub(p.seen) >= producerRetention {
			delete(t.producers, p.id)
		}
	}
	t.limit = max(maxIdleProducers, 2*len(t.producers))
}

// loaded counts what was replayed as heard of now.
func (t *txns) loaded(now time.Time) {
	for _, id := range slices.Sorted(maps.Keys(t.producers)) {
		t.producers[id].seen = now
	}
}

// idle lists the producers without an open transaction.
func (t *txns) idle() (out []*producer) {
	for _, id := range slices.Sorted(maps.Keys(t.producers)) {
		if p := t.producers[id]; p.open == nil {
			out = append(out, p)
		}
	}
	return out
}

// keys lists what a transaction has committed offsets for.
func (o *openTxn) keys() []offsetKey {
	return slices.SortedFunc(maps.Keys(o.offsets), func(a, b offsetKey) int {
		return cmp.Or(cmp.Compare(a.group, b.group), kind.ComparePartitions(a.TopicPartition, b.TopicPartition))
	})
}
