package window

import (
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
)

// The types of acknowledgement, with Kafka's numbers.
const (
	Gap     int8 = 0 // There is no record.
	Accept  int8 = 1
	Release int8 = 2
	Reject  int8 = 3
	Renew   int8 = 4
)

// Acknowledgement is what a member says of the records from First to Last: one type for all
// of them, or one for each.
type Acknowledgement struct {
	First, Last int64
	Types       []int8
}

func (a *Acknowledgement) typeOf(offset int64) int8 {
	if len(a.Types) == 1 {
		return a.Types[0]
	}
	return a.Types[offset-a.First]
}

// alike is the last offset up to which all have the type of this one.
func (a *Acknowledgement) alike(offset int64) int64 {
	if len(a.Types) == 1 {
		return a.Last
	}
	last := offset
	for last < a.Last && a.Types[last+1-a.First] == a.Types[offset-a.First] {
		last++
	}
	return last
}

// check says what is wrong with acknowledgements by themselves. Renewal must have been
// announced by the request (KIP-1222).
func check(acks []Acknowledgement, renew bool) *kerr.Error {
	for i := range acks {
		a := &acks[i]
		switch n := int64(len(a.Types)); {
		case a.First > a.Last || i > 0 && a.First < acks[i-1].Last:
			return kerr.InvalidRequest
		case n == 0 || n > 1 && a.Last-a.First != n-1:
			return kerr.InvalidRequest
		}
		for _, t := range a.Types {
			if t < Gap || t > Renew || t == Renew && !renew {
				return kerr.InvalidRequest
			}
		}
	}
	return nil
}

// Acknowledge takes what a member says of its records: all of it, or nothing and an error.
// The member is answered once the write is done, or at once if there is none. Renew says that
// the request may renew locks.
//
// What is below the start was decided elsewhere, and what is said of it does not matter.
func (p *Partition) Acknowledge(now time.Time, member string, acks []Acknowledgement, renew bool) (*Write, *kerr.Error) {
	if err := check(acks, renew); err != nil {
		return nil, err
	}
	for len(acks) > 0 && acks[0].Last < p.start {
		acks = acks[1:]
	}
	if len(acks) == 0 {
		return nil, nil
	}
	wrong := p.wrong(acks)
	k := &acknowledging{Partition: p, acks: acks[:wrong], member: member, id: p.lastWrite + 1, until: now.Add(p.set.Lock).UnixNano()}
	first, last := max(acks[0].First, p.start), int64(-1)
	if wrong > 0 {
		last = acks[wrong-1].Last
	}
	edit, ok := p.plan(first, last, k.say)
	switch {
	case !ok:
		return nil, kerr.InvalidRecordState
	case wrong == len(acks):
	case acks[wrong].First < p.next && acks[wrong].Last >= p.next:
		return nil, kerr.InvalidRequest
	default:
		return nil, kerr.InvalidRecordState
	}
	p.carryOut(edit)
	return p.begin(k.batches, span{first, last}), nil
}

// wrong is how many acknowledgements come before one that is wrong wherever the records
// are: it is of what was never delivered, or of the last offset of the one before.
func (p *Partition) wrong(acks []Acknowledgement) int {
	for i, a := range acks {
		if a.Last >= p.next || i > 0 && a.First == acks[i-1].Last {
			return i
		}
	}
	return len(acks)
}

// acknowledging is one call of Acknowledge.
type acknowledging struct {
	*Partition
	acks    []Acknowledgement
	member  string
	id      uint64
	until   int64
	batches []StateBatch
}

// say is what becomes of the records of a run, or that it may not be said of them.
func (k *acknowledging) say(r run) (last int64, to is, ok bool) {
	for k.acks[0].Last < r.first {
		k.acks = k.acks[1:]
	}
	a := &k.acks[0]
	if r.first < a.First {
		return min(r.last, a.First-1), r.is, true
	}
	if r.state != Acquired || r.member != k.member || r.write != 0 {
		return 0, is{}, false
	}
	last, to = min(r.last, a.alike(r.first)), r.is
	switch a.typeOf(r.first) {
	case Renew:
		to.until = k.until
		return last, to, k.set.Renew
	case Accept:
		to.then = Acknowledged
	case Release:
		to.then = k.released(r.is)
	default:
		to.then = Archived
	}
	to.write = k.id
	k.batches = stored(k.batches, r.first, last, r.settled(to.then))
	return last, to, true
}
