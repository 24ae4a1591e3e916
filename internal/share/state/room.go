package state

import (
	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/group/schema"
)

// What is stored of all share partitions of a broker is bounded by its bytes.
const (
	// partBytes is about what a share partition takes, with so few runs that there always is
	// room for them.
	partBytes = 1 << 10
	fewRuns   = 16
	// runBytes is about what a run takes beyond those.
	runBytes = 48
)

// weightOf is about the memory of a share partition with so many runs.
func weightOf(k Key, runs int) int64 {
	return partBytes + 2*int64(len(k.Group)) + runBytes*int64(max(runs-fewRuns, 0))
}

// weight is what a share partition is counted for, 0 if it is not there.
func (s *Shard) weight(k Key) int64 {
	if p := s.all[k]; p != nil {
		return weightOf(k, len(p.Runs))
	}
	return 0
}

// Weight implements machine.Weighed.
func (s *Shard) Weight() int64 { return s.bytes }

// room says whether a share partition may come to have so many runs. What needs no more memory
// than before always may.
func (x *step) room(k Key, runs int) *kerr.Error {
	more := weightOf(k, runs) - x.weight(k)
	if more > 0 && x.cfg.MaxBytes > 0 && x.others+x.bytes+more > x.cfg.MaxBytes {
		return kerr.CoordinatorNotAvailable // There may be room for it later.
	}
	return nil
}

// roomForUpdate is room for what changes. That what a share partition begins with is done with may
// always be stored, or it would never get on: the next write drops that.
func (x *step) roomForUpdate(k Key, p *state, u *schema.ShareUpdate) *kerr.Error {
	if x.room(k, len(p.Runs)+len(u.Runs)) == nil { // There are no more than that.
		return nil
	}
	next := changed(p.ShareSnapshot, u)
	if len(next.Runs) == len(p.Runs)+1 && !isDone(p.Runs, next.Start) && isDone(next.Runs, next.Start) {
		return nil
	}
	return x.room(k, len(next.Runs))
}

// isDone says whether the first record is not delivered any more.
func isDone(runs []Run, start int64) bool {
	return len(runs) > 0 && runs[0].First <= max(start, 0) && runs[0].State != 0
}
