package kind

import "muster/internal/journal"

// Where members were when they died says which record may have killed them. So the trigger
// that tells of a member which left, or was not heard of any more, has what it had and what
// was committed of that. Who was removed or replaced did not die of a record.

// MaxAt is of how many partitions a step tells, and the account of a rebalance. Of a member
// that had more nothing is told: who watches would judge wrongly by a part of them.
const MaxAt = 1000

// Positions collects where a member was.
type Positions struct {
	B    *Base
	List []journal.Position
	n    int
}

// Add adds a partition, if something is committed of it.
func (w *Positions) Add(topic string, partition int32) {
	o, ok := w.B.Offsets[topic].Get(partition)
	if !ok {
		return
	}
	if w.n++; w.n <= MaxAt {
		w.List = append(w.List, journal.Position{Topic: topic, Partition: partition, Committed: o.Offset})
	}
}

// TakePositions returns them if the step has room for that.
func (x *Step) TakePositions(w *Positions) []journal.Position {
	if x.atN += w.n; x.atN > MaxAt {
		return nil
	}
	return w.List
}
