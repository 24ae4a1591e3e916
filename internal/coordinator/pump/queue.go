package pump

import "muster/internal/machine"

// enqueue takes a batch that a step asks for. Plain ones are merged with what
// waits already.
func (p *Pump) enqueue(b *machine.Batch) {
	if len(b.Records) == 0 && b.Control == nil {
		return
	}
	p.asked += uint64(max(len(b.Records), 1))
	plain := !isWhole(b)
	if last := len(p.queue) - 1; last < 0 || !plain || isWhole(&p.queue[last].Batch) {
		p.queue = append(p.queue, queued{Batch: machine.Batch{Whole: !plain, Producer: b.Producer, Control: b.Control}})
	}
	q := &p.queue[len(p.queue)-1]
	if b.Tag != 0 {
		q.tags = append(q.tags, tag{index: len(q.Records), tag: b.Tag})
	}
	q.Records = append(q.Records, b.Records...)
	q.bytes += b.Size()
}

func isWhole(b *machine.Batch) bool { return b.Whole || b.Producer != nil || b.Control != nil }

// Ready says that an append could begin. Whoever is told so sees to it that Append
// is called: nothing else has the queue go on.
func (p *Pump) Ready() bool { return !p.busy && len(p.queue) > 0 }

// Append begins an append of what waits, unless one is under way. Those who were
// answered when the one before ended mostly have more to ask for: the later it
// begins, the more goes into it.
func (p *Pump) Append() (a Append, ok bool) {
	if !p.Ready() {
		return a, false
	}
	first := &p.queue[0]
	if n := p.fits(first); n < len(first.Records) {
		p.under = first.split(n)
	} else {
		p.under, *first = *first, queued{}
		if len(p.queue) == 1 {
			p.queue = again(p.queue)
		} else {
			p.queue = p.queue[1:]
		}
	}
	p.busy = true
	return Append{Life: p.life, Batch: p.under.Batch}, true
}

// fits returns how many of a batch's records go into one append: all of them,
// unless it is a plain batch that has grown too large.
func (p *Pump) fits(q *queued) int {
	limit := maxBytes
	if p.maxBatch > 0 {
		limit = min(limit, p.maxBatch)
	}
	if q.Whole || len(q.Records) <= maxRecords && q.bytes <= limit {
		return len(q.Records)
	}
	n, bytes := 0, 0
	for n < min(len(q.Records), maxRecords) {
		bytes += machine.RecordOverhead + q.Records[n].Size()
		if bytes > limit {
			break
		}
		n++
	}
	return max(n, 1) // One record above maxBytes, but not too large for the log: the core sees to that.
}

// split takes the first n records off a batch, and what belongs to them.
func (q *queued) split(n int) queued {
	first := queued{Batch: machine.Batch{Records: q.Records[:n:n]}}
	q.Records = q.Records[n:]
	for len(q.tags) > 0 && q.tags[0].index < n {
		first.tags = append(first.tags, q.tags[0])
		q.tags = q.tags[1:]
	}
	for i := range q.tags {
		q.tags[i].index -= n
	}
	first.bytes = first.Size()
	q.bytes -= first.bytes
	return first
}

// held is things that wait for records to be durable, in the order in which
// they came.
type held[T any] struct {
	items []waits[T]
	first int // before it they are gone
}

type waits[T any] struct {
	until uint64 // so many records must be durable
	item  T
}

func (h *held[T]) hold(until uint64, items []T) {
	for _, item := range items {
		h.items = append(h.items, waits[T]{until, item})
	}
}

// release moves what has waited for long enough to out.
func (h *held[T]) release(durable uint64, out []T) []T {
	for h.first < len(h.items) && h.items[h.first].until <= durable {
		out = append(out, h.items[h.first].item)
		h.items[h.first] = waits[T]{}
		h.first++
	}
	switch rest := h.items[h.first:]; {
	case len(rest) == 0:
		h.items, h.first = again(h.items), 0
	case h.first > len(rest): // While the log is busy somebody always waits.
		n := copy(h.items, rest)
		clear(h.items[n:])
		h.items, h.first = h.items[:n], 0
	}
	return out
}

// keep is for how many things room is kept from step to step. What more a large
// one needs, such as a load, is given back, together with what it was about.
const keep = 16

// again empties a list that is used again.
func again[T any](list []T) []T {
	if cap(list) > keep {
		return nil
	}
	clear(list)
	return list[:0]
}
