package store

import (
	"maps"
	"slices"

	"muster/internal/record"
)

// ProducerBatches is how many batches are remembered of each producer.
const ProducerBatches = 5

// Producer is what is kept of one idempotent producer in one partition.
type Producer struct {
	ID            int64
	Epoch         int16
	LastTimestamp int64
	// Batches holds the last batches, oldest first, at most ProducerBatches.
	Batches []ProducerBatch
}

// ProducerBatch is one batch that a producer appended.
type ProducerBatch struct {
	BaseSequence int32
	LastSequence int32
	BaseOffset   int64
	LastOffset   int64
	Timestamp    int64
}

// Note takes in a batch that the producer appended at a time, in milliseconds.
// A new epoch begins with nothing to compare a retry with.
func (p *Producer) Note(b record.Batch, now int64) {
	if p.Epoch != b.ProducerEpoch() {
		p.Batches = nil
	}
	p.ID, p.Epoch, p.LastTimestamp = b.ProducerID(), b.ProducerEpoch(), now
	if len(p.Batches) == ProducerBatches {
		copy(p.Batches, p.Batches[1:])
		p.Batches = p.Batches[:ProducerBatches-1]
	}
	p.Batches = append(p.Batches, ProducerBatch{
		BaseSequence: b.BaseSequence(), LastSequence: b.LastSequence(),
		BaseOffset: b.BaseOffset(), LastOffset: b.LastOffset(), Timestamp: b.MaxTimestamp(),
	})
}

// ProducerMap is the producers of a partition by their ids.
type ProducerMap map[int64]*Producer

// NewProducerMap returns a map of copies of the producers.
func NewProducerMap(list []Producer) ProducerMap {
	m := make(ProducerMap, len(list))
	for _, p := range list {
		p.Batches = slices.Clone(p.Batches)
		m[p.ID] = &p
	}
	return m
}

// Note takes in a batch that was appended at a time, in milliseconds. A batch
// without producer, or with a transaction marker, has no sequence to remember.
func (m ProducerMap) Note(b record.Batch, now int64) {
	if b.ProducerID() < 0 || b.Control() {
		return
	}
	p := m[b.ProducerID()]
	if p == nil {
		p = &Producer{}
		m[b.ProducerID()] = p
	}
	p.Note(b, now)
}

// List returns copies of the producers in the order of their ids.
func (m ProducerMap) List() []Producer {
	out := make([]Producer, 0, len(m))
	for _, id := range slices.Sorted(maps.Keys(m)) {
		p := *m[id]
		p.Batches = slices.Clone(p.Batches)
		out = append(out, p)
	}
	return out
}
