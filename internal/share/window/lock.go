package window

import "time"

// Expire releases the records whose locks ran out, unless a write under way says what
// becomes of them. They are available, or archived, whether the write is done or fails.
func (p *Partition) Expire(now time.Time) *Write {
	var batches []StateBatch
	at := now.UnixNano()
	p.change(p.start, p.next-1, func(r run) (int64, is) {
		if r.state != Acquired || r.write != 0 || r.until > at {
			return r.last, r.is
		}
		to := r.settled(p.released(r.is))
		batches = stored(batches, r.first, r.last, to)
		return r.last, to
	})
	w := p.begin(batches, nothing)
	p.advance()
	return w
}

// NextExpiry is when the next lock runs out; false if there is none. A lock under a write
// does not count: Failed sees to it.
func (p *Partition) NextExpiry() (at time.Time, ok bool) {
	first := int64(0)
	for i := range p.runs {
		if r := &p.runs[i]; r.state == Acquired && r.write == 0 && (!ok || r.until < first) {
			first, ok = r.until, true
		}
	}
	return time.Unix(0, first).UTC(), ok
}

// Leave releases what a member has acquired: its session ended. Deliveries count as they do
// if it says so itself (KAFKA-19972). It happens once the write is done; if that fails, locks
// run out.
func (p *Partition) Leave(member string) *Write {
	var batches []StateBatch
	id, all := p.lastWrite+1, span{p.start, p.next - 1}
	p.change(all.first, all.last, func(r run) (int64, is) {
		if r.state != Acquired || r.member != member || r.write != 0 {
			return r.last, r.is
		}
		to := r.is
		to.write, to.then = id, p.released(r.is)
		batches = stored(batches, r.first, r.last, r.settled(to.then))
		return r.last, to
	})
	return p.begin(batches, all)
}
