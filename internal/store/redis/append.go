package redis

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"muster/internal/record"
	"muster/internal/store"
)

// A group of appends goes to Redis in one transaction; while it is under way,
// the next group gathers. These bound a group, since the server does nothing
// else while it executes one.
const (
	maxGroupBytes   = 2 << 20
	maxGroupEntries = 1500
)

// pending is an append, or a flush, that waits for its turn.
type pending struct {
	batch   record.Batch // our copy
	entries []entry      // in the stream layout
	bytes   int64
	ahead   int64 // how far the timestamps are ahead of the epoch, see tail
	err     error // it is refused, but not before its turn
	base    int64

	done  func(store.Appended, error)
	flush func(error)
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
	if drain {
		l.drain()
	}
}

// prepare copies a batch and makes entries of it.
func (l *log) prepare(batch []byte) (*pending, error) {
	if n, err := record.Peek(batch); err != nil || n != len(batch) {
		return &pending{}, store.ErrInvalidBatch
	}
	p := &pending{batch: append(record.Batch(nil), batch...)}
	if l.layout == store.LayoutLog {
		p.bytes = int64(len(batch))
		return p, nil
	}
	if err := p.split(); err != nil {
		return p, fmt.Errorf("%w: %w", store.ErrInvalidBatch, err)
	}
	return p, nil
}

var (
	errNotForStreams = errors.New("the stream layout has no place for transactions: use muster.redis.layout=log")
	errNoRecords     = errors.New("no records")
	errOffsetDeltas  = errors.New("offset deltas with gaps")
)

// split makes an entry of each record.
func (p *pending) split() error {
	if p.batch.Control() || p.batch.Transactional() {
		return errNotForStreams
	}
	if p.batch.Count() <= 0 {
		return errNoRecords
	}
	p.ahead = -maxTimestamp
	err := p.batch.Each(func(r *record.Record) error {
		if int(r.OffsetDelta) != len(p.entries) {
			return errOffsetDeltas
		}
		e := encodeRecord(r)
		p.entries = append(p.entries, e)
		p.bytes += e.size()
		p.ahead = max(p.ahead, r.Timestamp)
		return nil
	})
	if err == nil && int(p.batch.LastOffsetDelta()) != len(p.entries)-1 {
		return errOffsetDeltas
	}
	return err
}

// weight is how many entries a pending append adds.
func (p *pending) weight() int {
	if p.batch == nil {
		return 0
	}
	return max(len(p.entries), 1)
}

// Flush implements store.Log.
func (l *log) Flush(done func(error)) {
	if _, drain := l.enqueue(&pending{flush: done}); drain {
		l.drain()
	}
}

// enqueue puts something into the queue. It says which offset an append will
// get, unless others append too, and whether the caller must see to it that the
// queue is drained.
func (l *log) enqueue(p *pending) (base int64, drain bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.err == nil && (l.ended || l.closed) {
		p.err = store.ErrClosed
	}
	base = max(l.promised, l.next)
	if p.sends() {
		l.promised = base + int64(p.batch.LastOffsetDelta()) + 1
	}
	l.queue = append(l.queue, p)
	drain = !l.draining
	l.draining = true
	return base, drain
}

// drain starts to empty the queue. A log with nothing to do has no goroutine,
// and what need not wait for Redis is done at once.
func (l *log) drain() {
	for group := l.take(); group != nil; group = l.take() {
		if slices.ContainsFunc(group, (*pending).sends) {
			go func() {
				for ; group != nil; group = l.take() {
					l.sendGroup(group)
				}
			}()
			return
		}
		l.sendGroup(group)
	}
}

// sends says whether there is something to send.
func (p *pending) sends() bool { return p.batch != nil && p.err == nil }

// take returns the next group, or nil after which nobody drains the queue.
func (l *log) take() []*pending {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, entries, bytes := 0, 0, int64(0)
	for n < len(l.queue) {
		p := l.queue[n]
		if entries > 0 && (entries+p.weight() > maxGroupEntries || bytes+p.bytes > maxGroupBytes) {
			break
		}
		entries += p.weight()
		bytes += p.bytes
		n++
	}
	if n == 0 {
		l.queue, l.draining = nil, false
		l.idle.Broadcast()
		return nil
	}
	group := l.queue[:n:n]
	l.queue = l.queue[n:]
	return group
}

// sendGroup sends the appends of a group and tells everybody how it went, in
// order.
func (l *log) sendGroup(group []*pending) {
	appends := make([]*pending, 0, len(group))
	for _, p := range group {
		if p.sends() {
			appends = append(appends, p)
		}
	}
	var err error
	if len(appends) > 0 {
		if err = l.failure(); err == nil {
			if err = l.send(appends); err != nil {
				l.fail(err)
			}
		}
	}
	for _, p := range group {
		switch {
		case p.flush != nil:
			l.flushed(p)
		case p.err != nil:
			p.done(store.Appended{}, p.err)
		case err != nil:
			p.done(store.Appended{}, err)
		default:
			p.done(store.Appended{BaseOffset: p.base, LastOffset: p.base + int64(p.batch.LastOffsetDelta())}, nil)
		}
	}
}

// failure says why nothing can be appended any more.
func (l *log) failure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failed
}

// fail notes that an append failed. What comes after it must not be stored.
func (l *log) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case errors.Is(err, store.ErrFenced), errors.Is(err, store.ErrClosed):
		l.failed = err
	default:
		l.failed = store.ErrFailed
	}
}
