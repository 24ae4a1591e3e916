package partition

import (
	"context"
	"maps"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/record"
	"muster/internal/store"
)

// loadProducers takes the engine's snapshot and completes it from the batches
// that came after it.
func loadProducers(ctx context.Context, l store.Log) (store.ProducerMap, error) {
	list, offset, err := l.Producers(ctx)
	if err != nil {
		return nil, err
	}
	producers := store.NewProducerMap(list)
	var aborted []store.Aborted
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
			entry, err := producers.Note(batch, batch.MaxTimestamp())
			if err != nil {
				return nil, err
			}
			if entry != nil {
				aborted = append(aborted, *entry)
			}
		}
	}
	return producers, l.NoteAborted(ctx, aborted)
}

// checkSequence decides whether a batch of an idempotent producer comes next in
// the log. A batch that was appended before is returned, so that its producer
// gets the same answer again. A producer that is not known may start anywhere,
// since its state may have expired; but in a partition that was never written
// nothing can have, and an earlier batch may be about to be sent again
// (KAFKA-15591).
func checkSequence(l store.Log, producers store.ProducerMap, b record.Batch) (duplicate *store.ProducerBatch, err *kerr.Error) {
	p := producers[b.ProducerID()]
	if p == nil {
		if _, end := l.Bounds(); end == 0 && b.BaseSequence() != 0 {
			return nil, kerr.OutOfOrderSequenceNumber
		}
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

// Producers returns the producers that the partition remembers.
func (p *Partition) Producers() []store.Producer {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.producers.List()
}

// expireProducers forgets producers that have been idle for too long.
func (p *Partition) expireProducers(now time.Time) {
	oldest := now.Add(-p.deps.expiry()).UnixMilli()
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.producers, func(_ int64, x *store.Producer) bool { return x.LastTimestamp < oldest })
}
