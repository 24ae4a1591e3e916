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

// atClassic is where a member of a classic group is. Who has joined again has let go of what
// it had, and who has not synced does not know what it has.
func (x *step) atClassic(g *classicGroup, m *member) []journal.Position {
	works := g.state == Stable || g.state == PreparingRebalance && g.previous == Stable && m.join == 0
	if !works || m.unsynced || g.protocolType != consumerType {
		return nil
	}
	w := whereabouts{b: &g.base}
	eachAssigned(m.assigned, func(tp topicPartition) { w.add(tp.topic, tp.partition) })
	return x.tellAt(&w)
}

// atConsumer is where a member of a consumer group is, what it has yet to let go of included.
func (x *step) atConsumer(g *consumerGroup, mem *consumerMember) []journal.Position {
	if x.image == nil {
		return nil
	}
	w, now := whereabouts{b: &g.base}, mem.now()
	for _, list := range [][]heldPart{now.assigned, now.pending} {
		for _, p := range list {
			if t := x.image.TopicByID(p.topic); t != nil {
				w.add(t.Name, p.n)
			}
		}
	}
	return x.tellAt(&w)
}
