package window

import (
	"cmp"
	"slices"
)

// run is offsets that are alike.
type run struct {
	first, last int64
	is
}

// is what is known of an offset.
type is struct {
	state State
	count int16 // how often it was delivered
	// Of what is acquired: by whom, and until when, in nanoseconds.
	member string
	until  int64
	// write is the write under way that says what state it has then; 0 if there is none.
	write uint64
	then  State
}

func (r *run) length() int64 { return r.last - r.first + 1 }

// released is what becomes of an acquired record that was not processed.
func (p *Partition) released(i is) State {
	if i.count >= p.set.Limit {
		return Archived
	}
	return Available
}

// settled is an acquired record in another state, and free of its member.
func (i is) settled(s State) is { return is{state: s, count: i.count} }

// push adds a run to a list, or what it covers to the last run if that is alike.
func push(list []run, r run) []run {
	if n := len(list) - 1; n >= 0 && list[n].is == r.is && list[n].last+1 == r.first {
		list[n].last = r.last
		return list
	}
	return append(list, r)
}

// append adds a run at the end of the window.
func (p *Partition) append(last int64, i is) {
	p.runs = push(p.runs, run{p.next, last, i})
	p.next = last + 1
}

// edit is runs that take the place of others.
type edit struct {
	from, to int
	runs     []run
}

// plan passes over the runs from first to last. Of each, f is given what is left, and says
// up to which offset that becomes what. If f says no, there is nothing to carry out.
func (p *Partition) plan(first, last int64, f func(run) (last int64, to is, ok bool)) (e edit, ok bool) {
	e.from, _ = slices.BinarySearchFunc(p.runs, first, func(r run, at int64) int { return cmp.Compare(r.last, at) })
	e.to = e.from
	e.runs = p.room[:0]
	if e.from > 0 { // A neighbour may become like what is changed.
		e.from--
		e.runs = append(e.runs, p.runs[e.from])
	}
	for ; e.to < len(p.runs) && p.runs[e.to].first <= last; e.to++ {
		r := p.runs[e.to]
		if r.first < first {
			e.runs = push(e.runs, run{r.first, first - 1, r.is})
			r.first = first
		}
		for end := min(r.last, last); r.first <= end; {
			part := r
			part.last = end
			at, is, ok := f(part)
			if !ok {
				return edit{}, false
			}
			e.runs = push(e.runs, run{r.first, at, is})
			r.first = at + 1
		}
		if r.first <= r.last {
			e.runs = push(e.runs, r)
		}
	}
	if e.to < len(p.runs) {
		e.runs = push(e.runs, p.runs[e.to])
		e.to++
	}
	return e, true
}

// carryOut makes a plan true.
func (p *Partition) carryOut(e edit) {
	p.runs = slices.Replace(p.runs, e.from, e.to, e.runs...)
	clear(e.runs)
	if p.room = e.runs[:0]; cap(p.room) > keep {
		p.room = nil
	}
}

// keep is for how many runs room is kept from call to call.
const keep = 64

// change plans and carries out what is never refused.
func (p *Partition) change(first, last int64, f func(run) (last int64, to is)) {
	e, _ := p.plan(first, last, func(r run) (int64, is, bool) {
		last, to := f(r)
		return last, to, true
	})
	p.carryOut(e)
}
