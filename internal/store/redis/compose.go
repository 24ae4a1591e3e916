package redis

import (
	"fmt"
	"math"
	"slices"

	"muster/internal/store"
)

// tail is the end of a log, as it is or as a transaction leaves it.
type tail struct {
	next    int64 // the log end offset
	counter int64 // the last part of the token: every attempt has its own
	size    int64
	count   int64
	epochs  []store.EpochStart
	// maxTimestamp is the largest timestamp ever appended (log layout).
	maxTimestamp int64
	// ahead is how far, in ms, the timestamp of a record was ahead of its id at
	// most (stream layout). It bounds where a search by timestamp must begin.
	ahead int64
	// largest is the size of the largest entry ever appended.
	largest int64
	// top is the last id that the index covers, and added how many entries it does in all
	// (indexed layout).
	top   entryID
	added int64
}

// transaction is a group with its offsets. It builds upon the log as it is, or
// as an earlier transaction leaves it.
type transaction struct {
	group   []*pending
	entries int64
	adds    int     // how many of them have a command of their own
	before  entryID // no entry may be after it
	from    tail
	to      tail
	prev    *transaction
	acked   int64 // the counter of the last one acknowledged before it was made
	// producers is the state after it of the producers that it has batches of.
	producers map[int64]producer
	aborted   []store.Aborted // by markers that it has
	// index is what it adds to the index, and truth what the script has told of the log before
	// it, nil if that is what it builds upon (indexed layout).
	index *indexEntry
	truth *indexTruth

	done    chan struct{} // closed when there are results
	results results
	err     error
}

// compose gives offsets to a group.
func (l *log) compose(group []*pending, prev *transaction) (*transaction, error) {
	tx := &transaction{group: group, prev: prev, producers: map[int64]producer{}, done: make(chan struct{})}
	l.mu.Lock()
	defer l.mu.Unlock()
	tx.from, tx.acked = l.tail, l.tail.counter
	if prev != nil {
		tx.from = prev.to
	}
	tx.to = tx.from
	var records int64
	for _, p := range group {
		if p.sends() {
			records += int64(p.batch.LastOffsetDelta()) + 1
			tx.entries += int64(p.weight())
			tx.to.size += p.bytes
		}
	}
	if records == 0 {
		return tx, nil
	}
	base, err := l.base(tx.from.next, records)
	if err != nil {
		return nil, err
	}
	l.attempts++
	tx.to.counter = l.attempts
	tx.to.count += tx.entries
	tx.to.epochs = store.AddEpoch(tx.from.epochs, l.epoch, base)
	tx.to.next = base
	for _, p := range group {
		if p.sends() {
			l.place(tx, p)
		}
	}
	l.layout.composed(tx, base)
	return tx, tx.err
}

// composed notes which ids the entries must be above.
func (l *log) composed(tx *transaction, base int64) {
	for _, p := range tx.group {
		if p.sends() {
			tx.to.ahead = max(tx.to.ahead, l.numbered.ahead(p))
		}
	}
	tx.before = l.numbered.lastBefore(base)
}

// place puts a batch at the end of a transaction. The lock is held.
func (l *log) place(tx *transaction, p *pending) {
	p.base, p.answered = tx.to.next, false
	p.batch.SetBaseOffset(p.base)
	p.batch.SetLeaderEpoch(l.epoch)
	tx.to.next = p.batch.LastOffset() + 1
	tx.to.maxTimestamp = max(tx.to.maxTimestamp, p.batch.MaxTimestamp())
	tx.to.largest = max(tx.to.largest, p.largest)
	if p.batch.ProducerID() >= 0 && (p.marker != nil || !p.batch.Control()) {
		l.noteProducer(tx, p)
	}
}

// noteProducer takes a batch into the state of its producer. The lock is held.
func (l *log) noteProducer(tx *transaction, p *pending) {
	state := l.producer(tx, p.batch.ProducerID())
	state.Batches = slices.Clone(state.Batches) // Others have the state before it.
	if p.marker != nil {
		if a := state.End(p.batch, *p.marker, p.batch.MaxTimestamp()); a != nil {
			tx.aborted = append(tx.aborted, *a)
		}
	} else {
		state.Note(p.batch, p.batch.MaxTimestamp())
	}
	tx.producers[state.ID] = producer{state, l.clock.now(l.store.now())}
}

// producer returns the state of a producer as a transaction finds it. The lock
// is held.
func (l *log) producer(tx *transaction, id int64) store.Producer {
	for ; tx != nil; tx = tx.prev {
		if p, ok := tx.producers[id]; ok {
			return p.Producer
		}
	}
	if p, ok := l.producers[id]; ok {
		return p.Producer
	}
	return *store.NewProducer(id)
}

// base chooses the offset for the next records.
func (l *log) base(next, records int64) (int64, error) {
	base := l.layout.base(next, records)
	if base < 0 || base > math.MaxInt64-records-1 {
		return 0, fmt.Errorf("%w: %s ends at offset %d, which leaves no room", store.ErrStorage, l.keys.stream, next)
	}
	return base, nil
}

// pace keeps the sender ahead of others who append to the stream. What it
// chooses is too low if they were faster; then it takes a larger step.
type pace struct {
	conflicts int // recent ones
	calm      int // transactions since the last
}

const maxPace = 10

func (p *pace) conflict() {
	p.conflicts, p.calm = min(p.conflicts+1, maxPace), 0
}

func (p *pace) success() {
	if p.calm++; p.calm >= 64 && p.conflicts > 0 {
		p.conflicts, p.calm = p.conflicts-1, 0
	}
}

// gap is how many offsets to leave to others, margin how many ms to be ahead.
func (p *pace) gap() int64 {
	if p.conflicts == 0 {
		return 0
	}
	return 16 << p.conflicts
}

func (p *pace) margin() int64 {
	if p.conflicts == 0 {
		return 0
	}
	return 1 << (p.conflicts - 1)
}
