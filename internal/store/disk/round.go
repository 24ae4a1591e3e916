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

// part is what a round makes durable of a log, whose syncMu is held meanwhile: so the
// log stays as it is in all but that batches are appended.
type part struct {
	log       *log
	end, size int64
	waiting   []func(error)
}

// run makes logs durable by rounds of the journal. Those that do not fit go to the
// syncers. One alone is synced at once where it is: that is no more work for the disk, and
// less for us.
func (r *rounder) run(logs []*log) {
	if len(logs) == 1 && !r.journal.inline && !logs[0].isLoose() {
		logs[0].syncWaiting()
		return
	}
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
			r.begin()
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
	// Who holds the lock syncs the log, and others must not wait for that.
	if !l.syncMu.TryLock() {
		return false
	}
	if !r.copy(l) {
		l.syncMu.Unlock()
		return false
	}
	return true
}

// copy copies what is not durable of a log into the round.
func (r *rounder) copy(l *log) bool {
	waiting := l.takeWaiting() // First: what they wait for is there now.
	l.mu.RLock()
	ok := !l.closed && !l.failed.Load() && l.small() // More may have come since it was queued.
	var seg *segment
	var from int64
	p, loose := part{log: l, end: l.logEnd, waiting: waiting}, l.loose
	if ok {
		seg, from, p.size = l.active(), l.durableSize, l.active().sum.size
	}
	l.mu.RUnlock()
	if !ok || !r.read(l, seg, from, p.size, loose) {
		l.giveBack(waiting)
		return false
	}
	r.parts, r.logs = append(r.parts, p), append(r.logs, l)
	return true
}

// read adds a frame with a part of a segment.
func (r *rounder) read(l *log, seg *segment, from, to int64, loose bool) bool {
	f, err := l.acquire(seg)
	if err != nil {
		return false
	}
	defer l.release(f)
	before, frames := len(r.builder.buf), r.builder.frames
	kind := dataFrame
	if loose {
		kind = looseFrame
	}
	b := r.builder.add(kind, l.name, seg.base, from, int(to-from))
	if _, err := f.ReadAt(b, from); err != nil {
		r.builder.buf, r.builder.frames = r.builder.buf[:before], frames
		return false
	}
	return true
}

// giveBack lets somebody else see to those who wait.
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
			p.log.durableEnd, p.log.durableSize = p.end, p.size
			p.log.mu.Unlock()
		}
		p.log.syncMu.Unlock()
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
}
