package partition

import (
	"context"
	"math"
	"slices"

	"muster/internal/record"
	"muster/internal/store"
)

// firstUnderWay is the first offset of a transaction whose first batch is under way.
const firstUnderWay = math.MaxInt64

// noteBegun takes in a batch of a producer whose append begins. The producer's
// state is ahead of the log then. If the append fails it is loaded again, so that
// what others are to see, or to be told, waits for the outcome.
func (p *Partition) noteBegun(b record.Batch, now int64, f *pendingAppend) {
	x := p.producers[f.producer]
	f.opens = f.transactional && !f.control && (x == nil || x.TxnFirst == store.NoTxn)
	_, _ = p.producers.Note(b, now) // A marker of ours is well formed.
	if y := p.lastBatch(f); y != nil {
		y.BaseOffset = unknownOffset
	}
	switch {
	case f.opens:
		p.producers[f.producer].TxnFirst = firstUnderWay
		p.noteBegin(f.producer, f.epoch, f.start())
	case f.control:
		m, _, _ := b.Marker()
		f.commit = m.Commit
		p.noteEnd(f.producer, f.marker, math.MaxInt64)
		f.ending = p.questions.ending(f.producer, f.epoch, f.marker)
	}
}

// noteEnded takes in a batch of a producer that the log has taken.
func (p *Partition) noteEnded(l *openLog, f *pendingAppend, at store.Appended) error {
	if y := p.lastBatch(f); y != nil {
		y.BaseOffset, y.LastOffset = at.BaseOffset, at.LastOffset
	}
	switch {
	case !f.transactional:
	case f.control:
		p.questions.ended(f.ending, f.marker)
		if e, ok := p.lastEnds[f.producer]; ok && f.marker != nil && e.start == f.marker.Start {
			p.noteEnd(f.producer, f.marker, at.LastOffset)
		}
		p.questions.arrived(f.producer)
		return p.ends(context.Background(), l, f.producer, at.LastOffset, f.commit)
	default:
		p.begins(f.producer, at.BaseOffset, f.start())
		p.questions.arrived(f.producer)
		if x := p.producers[f.producer]; f.opens && x != nil && x.TxnFirst == firstUnderWay && !p.opensAgain(f.producer) {
			x.TxnFirst = at.BaseOffset
		}
	}
	return nil
}

// opensAgain says whether a later transaction of a producer has begun already.
func (p *Partition) opensAgain(producer int64) bool {
	return slices.ContainsFunc(p.underWay, func(o *pendingAppend) bool { return o.opens && o.producer == producer })
}
