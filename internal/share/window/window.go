// Package window is a share partition (KIP-932) at the leader of its partition: which
// records are on their way to which member of a share group, how often they were delivered,
// and what became of them.
//
//	           fetch: count+1, lock                    accept
//	Available ──────────────────────▶ Acquired ─────────────────────────▶ Acknowledged
//	    ▲                              │  │  ▲ renew: lock anew
//	    │  release, lock ran out,      │  └──┘
//	    │  session ended               │                  reject, gap
//	    └──────────────────────────────┴────────────────────────────────▶ Archived
//	                                        count at the limit, log start
//
// The window is what lies between the start offset (SPSO), below which nothing is delivered
// any more, and the next offset (SPEO + 1), from which on nothing was delivered yet. It is a
// list of runs of offsets that are alike, which cover it without holes: thousands of offsets
// are a handful of runs, and each call passes over them once.
//
// A Partition is a state machine without clock, goroutine, lock or randomness. It is told
// what was read of the log and what time it is. It reads and writes nothing: what must be
// stored it returns as a Write, and is told by Done or Failed what came of that. It knows
// neither sessions nor who may fetch: that is for the package that carries it.
//
//	acquire.go      records for a member (modes, batches, suspicious records)
//	acknowledge.go  what a member says of them
//	lock.go         locks that run out, members that leave
//	write.go        what is stored, and when a change counts
//	load.go         what is left of a window after its leader has changed
//	runs.go         the list of runs
package window

import (
	"math"
	"time"
)

// State is the state of a record, with the number that stored runs have.
type State int8

// The states. Acquired is never stored.
const (
	Available    State = 0
	Acquired     State = 1
	Acknowledged State = 2
	Archived     State = 4

	// absent is the state of an offset that the log was found to have no record of. It is
	// stored no more than that an offset was never delivered: the next leader looks again.
	absent State = 5
)

// isTerminal says that a record is not delivered any more, whatever happens.
func (s State) isTerminal() bool { return s != Available && s != Acquired }

// Settings are the settings of the group.
type Settings struct {
	Lock  time.Duration // share.record.lock.duration.ms
	Limit int16         // share.delivery.count.limit
	// Window is share.partition.max.record.locks: how many offsets the window may have, or
	// records, where offsets have holes.
	Window int64
	// Renew is share.renew.acknowledge.enable.
	Renew bool
}

// Partition is a share partition.
type Partition struct {
	set    Settings
	sparse bool
	epochs Epochs

	start, next int64
	runs        []run // from start to next, without holes; neighbours differ

	lastWrite uint64
	writes    map[uint64]span // under way: which offsets they may change
	room      []run           // used again
}

// Epochs are what stored state is fenced by.
type Epochs struct {
	Leader int32 // of the partition
	State  int32 // as it was read; a new one after the offsets of the group were altered
}

// span is offsets from first to last.
type span struct{ first, last int64 }

// Configure changes the settings. What is acquired keeps its lock, and records that were
// delivered too often for a lower limit are archived when they are next looked at.
func (p *Partition) Configure(s Settings) { p.set = s }

// StartOffset is the offset below which no record is delivered any more (SPSO).
func (p *Partition) StartOffset() int64 { return p.start }

// NextOffset is the offset from which on no record was delivered yet (SPEO + 1).
func (p *Partition) NextOffset() int64 { return p.next }

// NextFetch is where to read for the next Acquire: the first record that is available again,
// or else the first that was not delivered yet. It is false if the window is full.
func (p *Partition) NextFetch() (offset int64, ok bool) {
	for i := range p.runs {
		if p.runs[i].state == Available {
			return p.runs[i].first, true
		}
	}
	return p.next, p.free() > 0
}

// Limit is the first offset that the next Acquire surely takes nothing of: the window has no
// room for it. Where offsets have holes there is none.
func (p *Partition) Limit() int64 {
	if p.sparse {
		return math.MaxInt64
	}
	return p.next + max(p.free(), 0)
}

// free is how many offsets, or records where offsets have holes, may be added.
func (p *Partition) free() int64 {
	used := p.next - p.start
	if p.sparse {
		used = 0
		for i := range p.runs {
			if p.runs[i].state != absent {
				used += p.runs[i].length()
			}
		}
	}
	return p.set.Window - used
}

// Completed is how many offsets of the window need no more delivery (KIP-1226), among them
// those that a write under way says so of.
func (p *Partition) Completed() int32 {
	n := int64(0)
	for i := range p.runs {
		if r := &p.runs[i]; r.state.isTerminal() || r.write != 0 && r.then.isTerminal() {
			n += r.length()
		}
	}
	return int32(min(n, math.MaxInt32))
}

// advance moves the start past the records that are not delivered any more.
func (p *Partition) advance() {
	n := 0
	for n < len(p.runs) && p.runs[n].state.isTerminal() {
		n++
	}
	p.drop(n)
}

// drop removes the first runs.
func (p *Partition) drop(n int) {
	p.runs = p.runs[:copy(p.runs, p.runs[n:])]
	if p.start = p.next; len(p.runs) > 0 {
		p.start = p.runs[0].first
	}
}

// LogStart says that the log begins at an offset. What was before is gone: it is neither
// delivered again, nor does it matter what a member says of it.
func (p *Partition) LogStart(offset int64) {
	if offset <= p.start {
		return
	}
	p.next = max(p.next, offset)
	n := 0
	for n < len(p.runs) && p.runs[n].last < offset {
		n++
	}
	if n < len(p.runs) {
		p.runs[n].first = max(p.runs[n].first, offset)
	}
	p.drop(n)
	p.advance()
}

// Runs is how many runs the window has, which says how much memory it takes.
func (p *Partition) Runs() int { return len(p.runs) }
