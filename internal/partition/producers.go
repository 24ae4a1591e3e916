package partition

import (
	"context"
	"maps"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/record"
	"muster/internal/store"
)

// loadBytes is how much of a log is read at a time for the producers in it.
const loadBytes = 256 << 10

// loadProducers takes the engine's snapshot and completes it from the batches
// that came after it. It also returns where the snapshot was made.
func loadProducers(ctx context.Context, l store.Log) (store.ProducerMap, int64, error) {
	list, saved, err := l.Producers(ctx)
	if err != nil {
		return nil, 0, err
	}
	producers := store.NewProducerMap(list)
	offset := saved
	var aborted []store.Aborted
	var buf []byte
	_, end := l.Bounds()
	for offset < end {
		recs, err := l.Read(ctx, store.ReadRequest{Offset: offset, NextOffset: end, MaxBytes: loadBytes, MinOne: true})
		if err != nil {
			return nil, 0, err
		}
		b, err := recs.LoadInto(&buf)
		recs.Release()
		if err != nil {
			return nil, 0, err
		}
		if len(b) == 0 {
			break
		}
		for len(b) > 0 {
			var batch record.Batch
			if batch, b, err = record.Next(b); err != nil {
				return nil, 0, err
			}
			offset = batch.LastOffset() + 1
			entry, err := producers.Note(batch, batch.MaxTimestamp())
			if err != nil {
				return nil, 0, err
			}
			if entry != nil {
				aborted = append(aborted, *entry)
			}
		}
	}
	return producers, saved, l.NoteAborted(ctx, aborted)
}

// mayAppend decides whether a batch with a producer may be appended, in the order
// of Kafka's checks. A batch that was appended before is returned, so that its
// producer gets the same answer again.
func (p *Partition) mayAppend(l *openLog, b record.Batch, t *terms) (known *store.ProducerBatch, err *kerr.Error) {
	if t.marker != nil {
		return p.mayEnd(t)
	}
	if t.own {
		return nil, nil
	}
	x := p.producers[b.ProducerID()]
	if x != nil {
		if b.ProducerEpoch() < x.Epoch {
			return nil, kerr.InvalidProducerEpoch
		}
		if known := batchOf(x, b); known != nil {
			return known, nil
		}
	}
	if err := p.checkTxn(x, b, t); err != nil {
		return nil, err
	}
	if !p.inOrder(l, x, b, t) {
		if p.early(x) {
			return nil, kerr.NotLeaderForPartition
		}
		return nil, kerr.OutOfOrderSequenceNumber
	}
	return nil, nil
}

// batchOf returns the batch that a producer sent before, if it is one of its last.
func batchOf(x *store.Producer, b record.Batch) *store.ProducerBatch {
	if x.Epoch != b.ProducerEpoch() {
		return nil
	}
	for i := range x.Batches {
		if y := &x.Batches[i]; y.BaseSequence == b.BaseSequence() && y.LastSequence == b.LastSequence() {
			return y
		}
	}
	return nil
}

// inOrder says whether a batch of an idempotent producer comes next in the log. A
// new epoch begins at 0. A producer that is not known may start anywhere, since
// its state may have expired; but in a partition that was never written nothing
// can have, and an earlier batch may be about to be sent again (KAFKA-15591). Nor
// can it where each transaction has an epoch of its own, or where the coordinator
// was asked about an earlier batch. Where the log has lost its end, what is not known of
// a producer may be lost with it, and another batch may be about to be sent again.
func (p *Partition) inOrder(l *openLog, x *store.Producer, b record.Batch, t *terms) bool {
	first := b.BaseSequence()
	switch {
	case x != nil && x.Epoch != b.ProducerEpoch():
		return first == 0
	case x != nil && len(x.Batches) > 0:
		return first == record.AddSequence(x.Batches[len(x.Batches)-1].LastSequence, 1)
	case first == 0:
		return true
	case t.adds || p.questions.lower(b):
		return false
	}
	_, end := l.Bounds()
	return p.run.Lost == 0 && (x != nil || end > 0)
}

// soon is how long after a log was opened batches may overtake earlier ones that
// were refused because it was not.
const soon = 5 * time.Second

// early says whether a batch that is out of order may have overtaken another one:
// the log was opened just now, and its producer has not appended since. (What is on
// our own disk is there before anybody knows of it, so only its being opened again
// counts.) Told that
// it is out of order a producer may begin anew, with all that it has under way,
// some of which may be in the log.
func (p *Partition) early(x *store.Producer) bool {
	if p.deps.now().Sub(p.openedTime) >= soon || !p.pipelined && !p.openedAgain {
		return false
	}
	if x == nil || len(x.Batches) == 0 {
		return true
	}
	last := x.Batches[len(x.Batches)-1]
	return last.BaseOffset != unknownOffset && last.BaseOffset < p.openedAt
}

// CoordinatorEpoch returns that of a producer's last marker, -1 if there was none.
func (p *Partition) CoordinatorEpoch(producer int64) int32 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if x := p.producers[producer]; x != nil {
		return x.CoordinatorEpoch
	}
	return -1
}

// Producers returns the producers that the partition remembers.
func (p *Partition) Producers() []store.Producer {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := p.producers.List()
	for i := range out {
		if out[i].TxnFirst == firstUnderWay {
			out[i].TxnFirst = p.LogEndOffset() // About there it will be.
		}
	}
	return out
}

// expireProducers forgets producers that have been idle for too long, unless they
// have a transaction open: its end is yet to come.
func (p *Partition) expireProducers(now time.Time) {
	since := now.Add(-p.deps.expiry())
	oldest := since.UnixMilli()
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.producers, func(_ int64, x *store.Producer) bool {
		return x.LastTimestamp < oldest && x.TxnFirst == store.NoTxn
	})
	maps.DeleteFunc(p.lastBegins, func(id int64, _ lastBegin) bool { return p.producers[id] == nil })
	maps.DeleteFunc(p.lastEnds, func(id int64, _ lastEnd) bool { return p.producers[id] == nil })
	p.questions.expire(since)
}
