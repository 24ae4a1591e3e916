package partition

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/record"
	"muster/internal/store"
)

// loadProducers takes the engine's snapshot and completes it from the batches
// that came after it.
func loadProducers(ctx context.Context, l store.Log) (map[int64]*store.Producer, error) {
	list, offset, err := l.Producers(ctx)
	if err != nil {
		return nil, err
	}
	producers := make(map[int64]*store.Producer, len(list))
	for i := range list {
		producers[list[i].ID] = &list[i]
	}
	_, end := l.Bounds()
	for offset < end {
		recs, err := l.Read(ctx, store.ReadRequest{Offset: offset, NextOffset: end, MaxBytes: 1 << 20, MinOne: true})
		if err != nil {
			return nil, err
		}
		b, err := recs.Load()
		recs.Release()
		if err != nil {
			return nil, err
		}
		if len(b) == 0 {
			break
		}
		for len(b) > 0 {
			var batch record.Batch
			if batch, b, err = record.Next(b); err != nil {
				return nil, err
			}
			offset = batch.LastOffset() + 1
			if batch.ProducerID() >= 0 && !batch.Control() {
				remember(producers, batch, batch.MaxTimestamp())
			}
		}
	}
	return producers, nil
}

// remember takes an appended batch into the producer state.
func remember(producers map[int64]*store.Producer, b record.Batch, now int64) {
	p := producers[b.ProducerID()]
	if p == nil {
		p = &store.Producer{ID: b.ProducerID()}
		producers[p.ID] = p
	}
	if p.Epoch != b.ProducerEpoch() {
		p.Epoch, p.Batches = b.ProducerEpoch(), nil
	}
	if len(p.Batches) == store.ProducerBatches {
		copy(p.Batches, p.Batches[1:])
		p.Batches = p.Batches[:store.ProducerBatches-1]
	}
	p.Batches = append(p.Batches, store.ProducerBatch{
		BaseSequence: b.BaseSequence(), LastSequence: b.LastSequence(),
		BaseOffset: b.BaseOffset(), LastOffset: b.LastOffset(), Timestamp: b.MaxTimestamp(),
	})
	p.LastTimestamp = now
}

// checkSequence decides whether a batch of an idempotent producer comes next.
// A batch that was appended before is returned, so that its producer gets the
// same answer again. A producer that is not known may start anywhere: its state
// may have expired.
func checkSequence(producers map[int64]*store.Producer, b record.Batch) (duplicate *store.ProducerBatch, err *kerr.Error) {
	p := producers[b.ProducerID()]
	if p == nil {
		return nil, nil
	}
	switch {
	case b.ProducerEpoch() < p.Epoch:
		return nil, kerr.InvalidProducerEpoch
	case b.ProducerEpoch() > p.Epoch:
		if b.BaseSequence() != 0 {
			return nil, kerr.OutOfOrderSequenceNumber
		}
		return nil, nil
	}
	for i := range p.Batches {
		if x := &p.Batches[i]; x.BaseSequence == b.BaseSequence() && x.LastSequence == b.LastSequence() {
			return x, nil
		}
	}
	if n := len(p.Batches); n > 0 && b.BaseSequence() != record.AddSequence(p.Batches[n-1].LastSequence, 1) {
		return nil, kerr.OutOfOrderSequenceNumber
	}
	return nil, nil
}

// producerList copies the producer state, in the order of ids. The partition's
// lock is held.
func (p *Partition) producerList() []store.Producer {
	out := make([]store.Producer, 0, len(p.producers))
	for _, id := range slices.Sorted(maps.Keys(p.producers)) {
		x := *p.producers[id]
		x.Batches = slices.Clone(x.Batches)
		out = append(out, x)
	}
	return out
}

// Producers returns the producers that the partition remembers.
func (p *Partition) Producers() []store.Producer {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.producerList()
}

// expireProducers forgets producers that have been idle for too long.
func (p *Partition) expireProducers(now time.Time) {
	oldest := now.Add(-p.deps.expiry()).UnixMilli()
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.producers, func(_ int64, x *store.Producer) bool { return x.LastTimestamp < oldest })
}
