package redis

import (
	"context"
	"fmt"

	"muster/internal/buffer"
	"muster/internal/record"
	"muster/internal/store"
)

// pending is an append, or a flush, that waits for its turn.
type pending struct {
	batch record.Batch // our copy
	// marker is what a control batch holds, nil if it ends no transaction.
	marker *record.Marker
	// In the stream layout, once there is memory for them:
	words    []string // the entries one after the other …
	ends     []int    // … and where each ends
	deltas   []int32  // and the offset delta of each, if they may have gaps
	unpacked []byte   // that they point to, nil if they point to the batch
	memory   int64    // that all of it takes
	bytes    int64
	// largest is the size of the largest entry, longest that of the longest word,
	// latest the largest timestamp.
	largest int64
	longest int64
	latest  int64
	// What it counts for in the queue.
	queuedBytes   int64
	queuedEntries int
	err           error // it is refused, but not before its turn
	base          int64
	// answered says that Redis has read the batch, and no one else will.
	answered bool

	done  func(store.Appended, error)
	flush func(error)
}

// sends says whether there is something to send.
func (p *pending) sends() bool { return p.batch != nil && p.err == nil }

// weight is how many entries a pending append adds.
func (p *pending) weight() int {
	if !p.sends() {
		return 0
	}
	return max(len(p.ends), 1)
}

// Append implements store.Log.
func (l *log) Append(ctx context.Context, batch []byte) (store.Appended, error) {
	type outcome struct {
		at  store.Appended
		err error
	}
	done := make(chan outcome, 1)
	l.Begin(ctx, batch, func(at store.Appended, err error) { done <- outcome{at, err} })
	o := <-done
	if o.err == nil {
		record.Batch(batch).SetBaseOffset(o.at.BaseOffset)
	}
	return o.at, o.err
}

// Begin implements store.Pipelined. A batch that is refused because it is
// invalid does not harm those that follow. The offset that it writes into the
// batch is a guess where others append too.
func (l *log) Begin(ctx context.Context, batch []byte, done func(store.Appended, error)) {
	p, err := l.prepare(batch)
	if err == nil {
		err = ctx.Err()
	}
	p.err, p.done = err, done
	base, drain := l.enqueue(p)
	if err == nil {
		record.Batch(batch).SetBaseOffset(base)
		record.Batch(batch).SetLeaderEpoch(l.epoch)
	}
	switch {
	case !drain:
	case p.sends():
		l.drain() // which leaves it to another goroutine
	default:
		go l.drain() // for this would call done
	}
}

// Flush implements store.Log.
func (l *log) Flush(done func(error)) {
	if _, drain := l.enqueue(&pending{flush: done}); drain {
		l.drain()
	}
}

// prepare copies a batch and checks it, as far as that is possible without its records.
func (l *log) prepare(batch []byte) (*pending, error) {
	if n, err := record.Peek(batch); err != nil || n != len(batch) {
		return &pending{}, store.ErrInvalidBatch
	}
	p := &pending{batch: buffer.Copy(batch)}
	return p, l.layout.check(p)
}

// readMarker looks into a control batch.
func (p *pending) readMarker() error {
	if !p.batch.Control() {
		return nil
	}
	m, ok, err := p.batch.Marker()
	if ok {
		p.marker = &m
	}
	return err
}

// checkSize refuses values that Redis does not take.
func (l *log) checkSize(size int64) error {
	limit := l.store.maxArgument.Load()
	if limit == 0 {
		limit = defaultMaxArgument
	}
	if size > limit {
		return fmt.Errorf("%w: a value of %d bytes, and Redis takes %d (its proto-max-bulk-len)", store.ErrTooLarge, size, limit)
	}
	return nil
}
