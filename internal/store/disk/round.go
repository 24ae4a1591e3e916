package disk

import (
	"slices"
	"time"
)

// rounder puts rounds of the journal together.
type rounder struct {
	*syncer
	builder roundBuilder
	parts   []part
	logs    []*log
}

// part is what a round makes durable of a log, whose roundMu is held meanwhile: so the
// log stays as it is in all but that batches are appended, and its file synced.
type part struct {
	log       *log
	end, size int64
	waiting   []func(error)
}

// run makes logs durable by rounds of the journal. Those that do not fit go to the
// syncers.
func (r *rounder) run(logs []*log) {
	if r.journal.inline {
		r.journal.prepare()
	}
	if !r.journal.begin() {
		for _, l := range logs {
			l.enqueue(false)
		}
		return
	}
	r.begin()
	for _, l := range logs {
		if len(r.builder.buf) > r.journal.most()-int(r.most) {
			r.flush()
		}
		if !r.add(l) {
			l.enqueue(false)
		}
	}
	r.flush()
}

func (r *rounder) begin() {
	r.builder.reset()
	clear(r.parts)
	clear(r.logs)
	r.parts, r.logs = r.parts[:0], r.logs[:0]
}

// add adds a log to the round, or says that the syncers must see to it.
func (r *rounder) add(l *log) bool {
	// Who holds the lock changes the log, and others must not wait for that.
	if !l.roundMu.TryLock() {
		return false
	}
	if !r.copy(l) {
		l.roundMu.Unlock()
		return false
	}
	return true
}

// copy copies what is not durable of a log into the round.
func (r *rounder) copy(l *log) bool {
	waiting := l.takeWaiting() // First: what they wait for is there now.
	before, frames := len(r.builder.buf), r.builder.frames
	l.mu.RLock()
	ok := !l.closed && !l.failed.Load() && l.small() // More may have come since it was queued.
	p := part{log: l, end: l.logEnd, waiting: waiting}
	var seg *segment
	var from int64
	var data []byte // which is to be read
	if ok {
		seg, from = l.active(), l.durableSize
		p.size = seg.sum.size
		data = r.frame(l, seg, from, p.size)
	}
	l.mu.RUnlock()
	if ok && data != nil {
		ok = l.readInto(data, seg, from) == nil
	}
	if !ok {
		r.builder.buf, r.builder.frames = r.builder.buf[:before], frames
		l.giveBack(waiting)
		return false
	}
	r.parts, r.logs = append(r.parts, p), append(r.logs, l)
	return true
}

// frame adds a frame with a part of a segment, as far as it is remembered, and returns
// where the rest goes. mu is held.
func (r *rounder) frame(l *log, seg *segment, from, to int64) []byte {
	kind := dataFrame
	if l.unsyncedNames {
		kind = unsyncedNamesFrame
	}
	data := r.builder.add(kind, l.name, seg.base, from, int(to-from))
	if known := l.tail.part(seg, from, to); known != nil {
		copy(data, known)
		return nil
	}
	return data
}

// readInto reads a part of a segment.
func (l *log) readInto(b []byte, seg *segment, from int64) error {
	f, err := l.acquire(seg)
	if err != nil {
		return err
	}
	defer l.release(f)
	_, err = f.ReadAt(b, from)
	return err
}

// giveBack lets someone else see to those who wait.
func (l *log) giveBack(waiting []func(error)) {
	l.flush.mu.Lock()
	defer l.flush.mu.Unlock()
	l.flush.waiting = slices.Concat(waiting, l.flush.waiting)
}

// flush writes the round. If that fails, the logs' own files are synced instead.
func (r *rounder) flush() {
	if len(r.parts) == 0 {
		return
	}
	began := time.Now()
	err := r.journal.write(&r.builder, r.logs)
	if flushed := r.parts[0].log.store.flushed; err == nil && flushed != nil {
		flushed(time.Since(began))
	}
	for _, p := range r.parts {
		if err == nil {
			p.log.mu.Lock()
			p.log.durableEnd, p.log.durableSize = max(p.log.durableEnd, p.end), max(p.log.durableSize, p.size)
			p.log.tail.on = true
			p.log.tail.forget(p.log.durableSize)
			p.log.mu.Unlock()
		}
		p.log.roundMu.Unlock()
	}
	for _, p := range r.parts {
		if err != nil {
			p.log.giveBack(p.waiting)
			p.log.enqueue(false)
			continue
		}
		for _, done := range p.waiting {
			done(nil)
		}
		p.log.requeue()
	}
	r.begin() // So that no one is kept who waited.
}
