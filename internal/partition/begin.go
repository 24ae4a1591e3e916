package partition

import (
	"context"
	"errors"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/record"
	"muster/internal/store"
)

// maxUnderWay is how many appends of a partition may be under way at once.
const maxUnderWay = 32

// pendingAppend is an append that a pipelined log has under way.
type pendingAppend struct {
	request
	// Of the producer, whose id is negative if there is none.
	producer      int64
	epoch         int16
	first, last   int32
	transactional bool
	control       bool // it is a marker …
	commit        bool
	opens         bool // … or the first batch of a transaction
	// ending are the guards of the questions that a marker makes void.
	ending []*guard
	// again holds the callbacks of those who sent the same batch again meanwhile:
	// they get the same outcome.
	again []func(Appended)
	// dropped says that its begin panicked: it has given back its slot, whatever the log says.
	dropped bool
}

// unknownOffset is the offset of a batch whose append is under way.
const unknownOffset = -1

// begin starts the append of a validated batch to a pipelined log. Its sequence
// is checked against the batches under way too: if one of those fails, all after
// it do, and the producers' state is loaded again with the log.
func (p *Partition) begin(ctx context.Context, b record.Batch, now int64, f *pendingAppend) {
	select {
	case p.slots <- struct{}{}:
	case <-ctx.Done():
		f.done(refused(kerr.NotLeaderForPartition, ""))
		return
	}
	l, known, err := p.beginNow(ctx, b, now, f)
	if err == nil && known == nil {
		return
	}
	<-p.slots
	switch {
	case err != nil:
		f.done(refused(err, ""))
	case known.BaseOffset != unknownOffset:
		f.out.BaseOffset = known.BaseOffset
		p.finish(l, f, known.LastOffset+1)
	}
}

// beginNow admits a batch and has the log begin its append. If it panics, the connection of
// the request ends, and the partition must not stay locked for all others: what it knows of
// producers may be half changed, so it is loaded again, as after an append that failed.
func (p *Partition) beginNow(ctx context.Context, b record.Batch, now int64, f *pendingAppend) (l *openLog, known *store.ProducerBatch, err *kerr.Error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	whole := false
	defer func() {
		if !whole {
			p.forget(f)
			f.dropped = true
			p.failed.Store(true)
			<-p.slots
		}
	}()
	l, known, err = p.admit(ctx, b, f)
	if err == nil && known == nil {
		if f.producer >= 0 {
			p.noteBegun(b, now, f)
		}
		p.underWay = append(p.underWay, f)
		p.used = true
		to := l // A result that is kept would be allocated for each append.
		l.Log.(store.Pipelined).Begin(ctx, b, func(at store.Appended, err error) { p.ended(to, f, at, err) })
	}
	whole = true
	return l, known, err
}

// forget has an append not be under way any more.
func (p *Partition) forget(f *pendingAppend) {
	p.underWay = slices.DeleteFunc(p.underWay, func(o *pendingAppend) bool { return o == f })
}

// admit decides under the lock whether a batch may be appended now. It returns
// the log, or the batch if it was appended before; if that is still under way,
// the new append joins it.
func (p *Partition) admit(ctx context.Context, b record.Batch, f *pendingAppend) (*openLog, *store.ProducerBatch, *kerr.Error) {
	if p.closed {
		return nil, nil, kerr.NotLeaderForPartition
	}
	if p.mustReopen() {
		if err := p.openAgain(ctx); err != nil {
			return nil, nil, p.wireError("open", err)
		}
	}
	if p.isOtherRun(f.run) {
		return nil, nil, kerr.NotLeaderForPartition
	}
	l := p.log.Load()
	if f.producer < 0 {
		return l, nil, nil
	}
	known, err := p.mayAppend(l, b, &f.terms)
	if err != nil || known == nil {
		return l, nil, err
	}
	found := *known // The state may change once the lock is given up.
	o := p.sameUnderWay(f)
	switch {
	case found.BaseOffset != unknownOffset && (!f.control || o == nil):
		return l, &found, nil
	case o == nil:
		return nil, nil, kerr.NotLeaderForPartition // It has just failed.
	}
	found.BaseOffset = unknownOffset
	o.again = append(o.again, f.done)
	return l, &found, nil
}

// sameUnderWay returns the append under way that carries what another one does, nil
// if there is none. Of a producer's markers, which all look the same, it is the last.
func (p *Partition) sameUnderWay(f *pendingAppend) *pendingAppend {
	for _, o := range slices.Backward(p.underWay) {
		if o.producer == f.producer && o.epoch == f.epoch && o.first == f.first && o.control == f.control {
			return o
		}
	}
	return nil
}

// lastBatch returns what is remembered of the batch that an append carries, if it
// still is.
func (p *Partition) lastBatch(f *pendingAppend) *store.ProducerBatch {
	if x := p.producers[f.producer]; x != nil && x.Epoch == f.epoch {
		for i := range x.Batches {
			if x.Batches[i].BaseSequence == f.first && x.Batches[i].LastSequence == f.last {
				return &x.Batches[i]
			}
		}
	}
	return nil
}

// ended takes in the outcome of an append.
func (p *Partition) ended(l *openLog, f *pendingAppend, at store.Appended, err error) {
	p.mu.Lock()
	p.forget(f)
	current := p.log.Load() == l
	if err == nil && !current && at.LastOffset >= p.openedAt {
		err = store.ErrFailed // The store took it, and has lost it since.
	}
	if err == nil && current {
		p.noted = at.LastOffset + 1
	}
	switch {
	case errors.Is(err, store.ErrInvalidBatch) && f.producer < 0:
		// The log is as it was, and no producer's state has to be.
	case err != nil && current:
		p.failed.Store(true)
		switch {
		case errors.Is(err, store.ErrClosed):
			// The log is gone. If that is because the topic is, or because
			// another leads, this partition is closed soon; if Redis lost it, a
			// new one is begun.
			p.notBefore, p.resting = p.deps.now().Add(goneFor), store.ErrClosed
		case p.noted == p.openedAt && errors.Is(err, store.ErrStorage) && !errors.Is(err, store.ErrUnavailable):
			// The store can be reached, and takes nothing.
			p.notBefore, p.resting = p.deps.now().Add(fullFor), errFull
		}
	case err == nil && current && f.producer >= 0:
		if err = p.noteEnded(l, f, at); err != nil {
			p.failed.Store(true) // The log has it, and is all that can be trusted.
		}
	}
	dropped := f.dropped
	p.mu.Unlock()
	if !dropped {
		<-p.slots
	}
	if err != nil {
		wire, message := p.wireError("append", err), ""
		if errors.Is(err, store.ErrInvalidBatch) {
			message = err.Error()
		}
		f.each(refused(wire, message))
		return
	}
	f.out.BaseOffset, f.out.Stored = at.BaseOffset, at.Bytes
	p.finish(l, f, at.LastOffset+1)
}

// finish answers once what was appended is as safe as acks wants it.
func (p *Partition) finish(l *openLog, f *pendingAppend, end int64) {
	f.out.LogStartOffset, _ = l.Bounds()
	if f.acks != AcksAll {
		p.show(l, end, false)
		f.each(f.out)
		return
	}
	l.Flush(func(err error) {
		if err != nil {
			f.each(refused(p.wireError("replicate", err), ""))
			return
		}
		p.show(l, end, true)
		f.each(f.out)
	})
}

// each tells everybody who waits.
func (f *pendingAppend) each(out Appended) {
	f.done(out)
	for _, done := range f.again {
		done(out)
	}
}
