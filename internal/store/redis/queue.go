package redis

import (
	"errors"

	"muster/internal/buffer"
	"muster/internal/store"
)

// Appends wait in a queue, and go to Redis in groups, each in one transaction.
// While one is under way the next group forms; if that becomes large it is sent
// too, building upon what the first one will have done. These
// bound a group, since the server does nothing else while it executes one.
const (
	maxGroupBytes   = 512 << 10
	maxGroupEntries = 1000
	// A group of that size is sent while another is under way.
	fullGroupBytes   = 256 << 10
	fullGroupEntries = 256
	maxUnderWay      = 2
)

// enqueue puts something into the queue. It says which offset an append will
// get, unless others append too, and whether the caller must see to it that the
// queue is drained.
func (l *log) enqueue(p *pending) (base int64, drain bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.err == nil && (l.ended || l.closed) {
		p.err = store.ErrClosed
	}
	base = max(l.promised, l.tail.next)
	if p.sends() {
		l.promised = base + int64(p.batch.LastOffsetDelta()) + 1
	}
	l.queue = append(l.queue, p)
	if p.sends() {
		p.queuedBytes, p.queuedEntries = int64(len(p.batch)), l.layout.entriesOf(p.batch)
	}
	l.queuedBytes += p.queuedBytes
	l.queuedEntries += p.queuedEntries
	if l.draining {
		if l.full() {
			l.wake()
		}
		return base, false
	}
	l.draining = true
	return base, true
}

// full says whether the queue is worth a transaction of its own while another
// one is under way. The lock is held.
func (l *log) full() bool {
	return l.queuedBytes >= fullGroupBytes || l.queuedEntries >= fullGroupEntries
}

// wake tells the sender to look at the queue.
func (l *log) wake() {
	select {
	case l.kick <- struct{}{}:
	default:
	}
}

// drain starts to empty the queue. A log with nothing to do has no goroutine,
// and what need not wait for Redis is done at once.
func (l *log) drain() {
	for {
		switch p := l.first(); {
		case p != nil && p.sends():
			go l.empty()
			return
		case p != nil:
			l.shift()
			l.finish([]*pending{p}, nil)
		case l.rest():
			return
		}
	}
}

// take returns the next group, if there is one. While another is under way it
// returns only what is worth it, and does not wait for memory: that other one
// may hold it.
func (l *log) take(underWay bool) []*pending {
	if underWay && !l.worthy() {
		return nil
	}
	var group []*pending
	entries, bytes := 0, int64(0)
	for p := l.first(); p != nil; p = l.first() {
		if p.sends() && !l.layout.encode(p, !underWay && entries == 0) {
			break
		}
		if entries > 0 && (entries+p.weight() > maxGroupEntries || bytes+p.bytes > maxGroupBytes) {
			break
		}
		entries += p.weight()
		bytes += p.bytes
		group = append(group, p)
		l.shift()
	}
	return group
}

func (l *log) worthy() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.full()
}

// first returns what is first in the queue, nil if it is empty. Only the one
// that drains the queue takes something out.
func (l *log) first() *pending {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.queue) == 0 {
		return nil
	}
	return l.queue[0]
}

// shift takes the first out of the queue.
func (l *log) shift() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queuedBytes -= l.queue[0].queuedBytes
	l.queuedEntries -= l.queue[0].queuedEntries
	l.queue[0] = nil
	l.queue = l.queue[1:]
}

// rest ends the draining of an empty queue.
func (l *log) rest() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.queue) > 0 {
		return false
	}
	l.queue, l.draining = nil, false
	l.idle.Broadcast()
	return true
}

// empty sends group after group until nothing is left. It holds the end of the
// log while transactions are under way.
func (l *log) empty() {
	var underWay []*transaction
	for {
		var group []*pending
		if len(underWay) < maxUnderWay && !(len(underWay) > 0 && l.claimed.Load() > 0) {
			group = l.take(len(underWay) > 0)
		}
		switch {
		case group != nil:
			if len(underWay) == 0 {
				l.sending.Lock()
			}
			underWay = append(underWay, l.dispatch(group, underWay))
		case len(underWay) > 0:
			select {
			case <-underWay[0].done:
				underWay = l.endFirst(underWay)
			case <-l.kick:
			}
			if len(underWay) == 0 {
				l.sending.Unlock()
			}
		case l.rest():
			return
		}
	}
}

// claim waits until no transaction is under way, and keeps it so until release.
func (l *log) claim() {
	l.claimed.Add(1)
	l.sending.Lock()
	l.claimed.Add(-1)
}

func (l *log) release() { l.sending.Unlock() }

// dispatch sends a group that builds upon those under way.
func (l *log) dispatch(group []*pending, underWay []*transaction) *transaction {
	var prev *transaction
	if len(underWay) > 0 {
		prev = underWay[len(underWay)-1]
	}
	err := l.failure()
	var tx *transaction
	if err == nil {
		tx, err = l.compose(group, prev)
	}
	if err != nil {
		tx = &transaction{group: group, done: make(chan struct{}), err: err}
		close(tx.done)
		return tx
	}
	l.launch(tx)
	return tx
}

// endFirst takes note of the outcome of the first transaction under way. If it was
// refused for a reason that passes, those after it were refused with it, and
// all are sent again, one after the other.
func (l *log) endFirst(underWay []*transaction) []*transaction {
	tx := underWay[0]
	if tx.err == nil {
		tx.err = l.outcome(tx)
	}
	if !errors.Is(tx.err, errTryAgain) {
		l.settle(tx)
		return underWay[1:]
	}
	for _, later := range underWay[1:] {
		<-later.done
	}
	for _, again := range underWay {
		again.err = l.failure()
		if again.err == nil {
			again.err = l.sendAgain(again)
		}
		l.settle(again)
	}
	return nil
}

// settle tells everybody in a group how it went.
func (l *log) settle(tx *transaction) {
	if tx.err == nil {
		l.layout.commit(tx)
	} else {
		l.fail(tx.err)
	}
	l.finish(tx.group, tx.err)
}

// finish completes what is in a group, in order.
func (l *log) finish(group []*pending, err error) {
	for _, p := range group {
		var at store.Appended
		if p.answered {
			at = store.Appended{BaseOffset: p.base, LastOffset: p.batch.LastOffset(), Bytes: p.bytes}
			buffer.Free(p.batch)
			p.batch = nil
		} else {
			p.unpacked = nil // The client may still be about to send it.
		}
		l.drop(p)
		switch {
		case p.flush != nil:
			l.flushed(p)
		case p.err != nil:
			p.done(store.Appended{}, p.err)
		case err != nil:
			p.done(store.Appended{}, err)
		default:
			p.done(at, nil)
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
	case l.failed != nil:
	case errors.Is(err, store.ErrFenced), errors.Is(err, store.ErrClosed):
		l.failed = err
	default:
		l.failed = store.ErrFailed
	}
}
