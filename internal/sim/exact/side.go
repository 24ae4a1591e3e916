package exact

import (
	"context"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/journal"
	"muster/internal/partition"
	"muster/internal/record"
	"muster/internal/store"
)

// The side topic is written in some transactions beside the output, and offsets of
// it are committed with them. It is deleted and comes back as another one of the
// same name, whatever goes on in it; log start moves through it too.

// tornTime is how long brokers may not know that the side topic was removed.
const tornTime = 20 * time.Second

// torn says that a transaction may have seen the side topic go: its markers there are
// left out, or end up in the next topic of that name.
func (m *model) torn(t *transaction, tp store.TopicPartition) bool {
	return tp.Topic == sideTopic && m.w.removed > 0 && t.began < m.w.removed+tornTime
}

// copyAside adds a batch for the side topic to some transactions.
func (x *instance) copyAside() {
	w := x.w
	if w.Rand.IntN(2) > 0 || w.someImage().Topic(sideTopic) == nil {
		return
	}
	x.a.aside = true
	tp := store.TopicPartition{Topic: sideTopic, Partition: w.Rand.Int32N(w.plan.sides)}
	recs := []record.Record{{Timestamp: w.Clock().UnixMilli(), Key: []byte("side"), Value: []byte(strconv.Itoa(x.a.number))}}
	x.todo = append(x.todo, x.batch(tp, recs))
}

// removeSide deletes the side topic. Its name is free when its logs are gone, and
// then it is created again.
func (w *world) removeSide() {
	if w.image().Topic(sideTopic) == nil || w.Calm {
		return
	}
	open := 0
	for i := range w.plan.sides {
		open += len(w.model.part(store.TopicPartition{Topic: sideTopic, Partition: i}).open)
	}
	if open == 0 && w.Rand.IntN(20) > 0 { // Better when there is something to disturb.
		w.After(w.Between(0, 100*time.Millisecond), w.removeSide)
		return
	}
	w.Tracef("the side topic is removed")
	w.Count("topic removed")
	if open > 0 {
		w.Count("topic removed with a transaction open")
	}
	w.removed = w.Now
	for _, p := range w.image().Topic(sideTopic).Partitions {
		w.firstEpoch = max(w.firstEpoch, p.LeaderEpoch+1)
	}
	edit := w.image().Edit()
	edit.RemoveTopic(sideTopic)
	w.publish(edit.Image())
	w.After(w.Between(0, 2*time.Second), w.deleteSide)
	w.After(w.Between(2*time.Second, 8*time.Second), w.createSide)
}

// deleteSide deletes the logs of a topic that was removed.
func (w *world) deleteSide() {
	if w.image().Topic(sideTopic) != nil {
		return
	}
	for i := range w.plan.sides {
		tp := store.TopicPartition{Topic: sideTopic, Partition: i}
		if l := w.store.logs[tp]; l != nil {
			l.owner = nil
			l.cuts++ // Syncs that are under way find nothing.
			delete(w.store.logs, tp)
			w.model.removed(tp)
		}
	}
}

// createSide makes a new topic of the same name.
func (w *world) createSide() {
	if w.image().Topic(sideTopic) != nil {
		return
	}
	w.deleteSide()
	w.Tracef("the side topic is made anew")
	w.Count("topic made anew")
	edit := w.image().Edit()
	edit.PutTopic(w.newTopic(sideTopic, w.plan.sides))
	w.publish(edit.Image())
}

// removed forgets what was in a log that is gone.
func (m *model) removed(tp store.TopicPartition) {
	delete(m.parts, tp)
	for _, s := range m.ids {
		for _, t := range s.all {
			delete(t.closed, tp)
			delete(t.told, tp)
		}
	}
}

// checkForgotten: once a coordinator knows that a topic is gone, there is no offset of
// it, nor any that a transaction might still commit.
func (b *broker) checkForgotten() {
	w := b.w
	for i := range w.inputs {
		k := w.inputKey(i)
		s := b.shards[store.TopicPartition{Topic: offsetsTopic, Partition: journal.PartitionFor(k.group, w.plan.offsets)}]
		if s == nil || !s.Pump.Active() {
			continue
		}
		s.request("probe", offsetsRequest(k, true), func(r kmsg.Response) {
			g := &r.(*kmsg.OffsetFetchResponse).Groups[0]
			if b.image.Topic(sideTopic) != nil || g.ErrorCode != 0 {
				return // There is another, or another coordinator.
			}
			w.Count("coordinator asked for offsets of a topic that is gone")
			if p := g.Topics[2].Partitions[0]; p.Offset != -1 || p.ErrorCode != 0 {
				w.Violated("%s: the offset of a topic that is gone is %d, error %d", k.group, p.Offset, p.ErrorCode)
			}
		})
	}
}

// led returns a partition, if its leader is up and has it open.
func (w *world) led(tp store.TopicPartition) (*simLog, *partition.Partition) {
	id := leaderOf(w.image(), tp)
	if id < 0 {
		return nil, nil
	}
	b, l := w.brokers[id], w.store.log(tp)
	if !b.up || l.owner == nil || l.owner.b != b || l.owner.life != b.life {
		return nil, nil
	}
	return l, b.manager.Get(tp.Topic, tp.Partition)
}

// trimSome has records deleted up to an offset: of the side topic any that can be
// seen, of the output those that everybody has read.
func (w *world) trimSome() {
	r := w.readers[w.Rand.IntN(len(w.readers))]
	l, p := w.led(r.tp)
	if p == nil {
		return
	}
	next := p.HighWatermark()
	for _, other := range w.readers {
		if other.tp == r.tp && r.tp.Topic == outputTopic {
			next = min(next, other.offset)
		}
	}
	if next <= l.start {
		return
	}
	w.moveStart(l, p, "DeleteRecords", func() error {
		if _, err := p.DeleteBefore(context.Background(), l.start+1+w.Rand.Int64N(next-l.start)); err != nil {
			return err
		}
		return nil
	})
}

// retainSome has a leader do what retention demands of one of its logs.
func (w *world) retainSome() {
	all := w.partitions()
	if l, p := w.led(all[w.Rand.IntN(len(all))]); p != nil {
		before := p.Producers()
		w.moveStart(l, p, "retention", func() error { return p.Retain(context.Background(), l.owner.b.clock()) })
		w.model.idle(l.tp, before, p.Producers())
	}
}

// moveStart does what may move log start, and looks what it did.
func (w *world) moveStart(l *simLog, p *partition.Partition, what string, do func() error) {
	open := len(p.OpenTxns())
	err := do()
	now := p.LogStartOffset()
	w.Tracef("%v: log start is %d, was %d, after %s: %v", l.tp, now, l.start, what, err)
	if now < l.start || now > p.HighWatermark() {
		w.Violated("%v: log start is %d, was %d, high watermark is %d", l.tp, now, l.start, p.HighWatermark())
	}
	if now == l.start {
		return
	}
	w.Count(what + " moves log start")
	for _, o := range w.model.part(l.tp).open {
		if o.first < now {
			w.Count("log start moves over an open transaction")
		}
	}
	if _, aborted := l.stable(p.HighWatermark()); len(aborted) > 0 && aborted[len(aborted)-1].FirstOffset < now && aborted[len(aborted)-1].LastOffset >= now {
		w.Count("log start moves into an aborted transaction")
	}
	l.start = now
	if got := len(p.OpenTxns()); got != open {
		w.Violated("%v: %d transactions are open after %s, %d were", l.tp, got, what, open)
	}
}
