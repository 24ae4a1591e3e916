package window

import (
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
)

// StateBatch is offsets with the state that is stored of them.
type StateBatch struct {
	First, Last int64
	State       State
	Count       int16
}

// Write is what must be stored. Writes are to be stored in the order in which they came, and
// may be put together.
type Write struct {
	ID uint64 // for Done or Failed
	Epochs
	// Start is the start offset before the write: the stored one trails the one here.
	Start int64
	// Completed is how many offsets from Start on need no more delivery once it is stored.
	Completed int32
	Batches   []StateBatch
}

// nothing is no offsets.
var nothing = span{0, -1}

// stored adds offsets to what is to be stored.
func stored(list []StateBatch, first, last int64, i is) []StateBatch {
	if n := len(list) - 1; n >= 0 && list[n].State == i.state && list[n].Count == i.count && list[n].Last+1 == first {
		list[n].Last = last
		return list
	}
	return append(list, StateBatch{first, last, i.state, i.count})
}

// begin begins a write, which decides about the offsets of a span; nil if there is nothing to
// store.
func (p *Partition) begin(batches []StateBatch, s span) *Write {
	if len(batches) == 0 {
		return nil
	}
	p.lastWrite++
	w := &Write{ID: p.lastWrite, Epochs: p.epochs, Start: p.start, Completed: p.Completed(), Batches: batches}
	if s != nothing {
		p.writes[w.ID] = s
	}
	return w
}

// Done says that a write is stored: only now do its records change, and are they those of
// another member.
func (p *Partition) Done(id uint64) {
	s, ok := p.writes[id]
	if !ok {
		return
	}
	delete(p.writes, id)
	p.change(max(s.first, p.start), s.last, func(r run) (int64, is) {
		if r.write == id {
			return r.last, r.settled(r.then)
		}
		return r.last, r.is
	})
	p.advance()
}

// Failed says that a write is not stored. Its records are their member's again, for as long
// as their locks last. What ran out meanwhile is released, with a write of its own.
func (p *Partition) Failed(now time.Time, id uint64) *Write {
	if s, ok := p.writes[id]; ok {
		delete(p.writes, id)
		p.change(max(s.first, p.start), s.last, func(r run) (int64, is) {
			if r.write == id {
				r.write, r.then = 0, 0
			}
			return r.last, r.is
		})
	}
	return p.Expire(now)
}

// ClientError is what members are told of a write that the share coordinator refused. Other
// errors of it are about the coordinator, and the write is tried again.
//
// After a fenced epoch there is another leader, or the offsets of the group were altered:
// the partition must be loaded anew.
func ClientError(err *kerr.Error) *kerr.Error {
	switch err {
	case kerr.FencedLeaderEpoch, kerr.FencedStateEpoch:
		return kerr.NotLeaderForPartition
	case kerr.NotCoordinator, kerr.CoordinatorNotAvailable, kerr.CoordinatorLoadInProgress:
		return kerr.CoordinatorNotAvailable
	case kerr.GroupIDNotFound, kerr.UnknownTopicOrPartition:
		return err
	}
	return kerr.UnknownServerError
}
