package group

import "muster/internal/journal"

// Where members were when they died says which record may have killed them. So the trigger
// that tells of a member which left, or was not heard of any more, has what it had and what
// was committed of that. Who was removed or replaced did not die of a record.

// maxAt is of how many partitions a step tells, and the account of a rebalance. Of a member
// that had more nothing is told: who watches would judge wrongly by a part of them.
const maxAt = 1000

// whereabouts collects where a member was.
type whereabouts struct {
	b    *base
	list []journal.Position
	n    int
}

// add adds a partition, if something is committed of it.
func (w *whereabouts) add(topic string, partition int32) {
	o, ok := w.b.offsets[topic].get(partition)
	if !ok {
		return
	}
	if w.n++; w.n <= maxAt {
		w.list = append(w.list, journal.Position{Topic: topic, Partition: partition, Committed: o.Offset})
	}
}

// tellAt returns them if the step has room for that.
func (x *step) tellAt(w *whereabouts) []journal.Position {
	if x.atN += w.n; x.atN > maxAt {
		return nil
	}
	return w.list
}
