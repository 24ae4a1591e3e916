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
	// CoordinatorEpoch is that of the last transaction marker, -1 if there was none.
	CoordinatorEpoch int32
	// TxnFirst is the first offset of the transaction that is open here, NoTxn if
	// there is none.
	TxnFirst int64
	// Batches holds the last batches, oldest first, at most ProducerBatches.
	Batches []ProducerBatch
}

// NoTxn stands for the first offset of a transaction where none is open.
const NoTxn int64 = -1

// Aborted is a transaction that was aborted in this log.
type Aborted struct {
	ProducerID  int64
	FirstOffset int64 // of its records
	LastOffset  int64 // of its marker
}

// ProducerBatch is one batch that a producer appended.
type ProducerBatch struct {
	BaseSequence int32
	LastSequence int32
	BaseOffset   int64
	LastOffset   int64
	Timestamp    int64
}

// NewProducer returns a producer of which nothing is known.
func NewProducer(id int64) *Producer {
	return &Producer{ID: id, Epoch: -1, CoordinatorEpoch: -1, TxnFirst: NoTxn}
}

// Note takes in a batch that the producer appended at a time, in milliseconds.
// A new epoch begins with nothing to compare a retry with. Batches with negative
// sequences, as coordinators write them, are not remembered.
func (p *Producer) Note(b record.Batch, now int64) {
	p.enter(b, now)
	if b.Transactional() && p.TxnFirst == NoTxn {
		p.TxnFirst = b.BaseOffset()
	}
	if b.BaseSequence() < 0 {
		return
	}
	if len(p.Batches) == ProducerBatches {
		copy(p.Batches, p.Batches[1:])
		p.Batches = p.Batches[:ProducerBatches-1]
	}
	p.Batches = append(p.Batches, ProducerBatch{
		BaseSequence: b.BaseSequence(), LastSequence: b.LastSequence(),
		BaseOffset: b.BaseOffset(), LastOffset: b.LastOffset(), Timestamp: b.MaxTimestamp(),
	})
}

// End takes in a transaction marker that was appended at a time, in milliseconds.
// It returns the transaction that the marker aborted, nil if it aborted none.
func (p *Producer) End(b record.Batch, m record.Marker, now int64) *Aborted {
	p.enter(b, now)
	first := p.TxnFirst
	p.CoordinatorEpoch, p.TxnFirst = m.CoordinatorEpoch, NoTxn
	if m.Commit || first == NoTxn {
		return nil
	}
	return &Aborted{ProducerID: p.ID, FirstOffset: first, LastOffset: b.LastOffset()}
}

func (p *Producer) enter(b record.Batch, now int64) {
	if p.Epoch != b.ProducerEpoch() {
		p.Batches = nil
	}
	p.ID, p.Epoch, p.LastTimestamp = b.ProducerID(), b.ProducerEpoch(), now
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

// Note takes in a batch that was appended at a time, in milliseconds, and returns
// the transaction that it aborted, nil if it aborted none. A batch without
// producer has nothing to remember.
func (m ProducerMap) Note(b record.Batch, now int64) (*Aborted, error) {
	if b.ProducerID() < 0 {
		return nil, nil
	}
	var marker record.Marker
	if b.Control() {
		var ok bool
		var err error
		if marker, ok, err = b.Marker(); err != nil || !ok {
			return nil, err
		}
	}
	p := m[b.ProducerID()]
	if p == nil {
		p = NewProducer(b.ProducerID())
		m[b.ProducerID()] = p
	}
	if b.Control() {
		return p.End(b, marker, now), nil
	}
	p.Note(b, now)
	return nil, nil
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
