package group

import (
	"maps"
	"slices"

	"muster/internal/group/kind"
	"muster/internal/group/schema"
	"muster/internal/group/subscription"
	"muster/internal/machine"
)

// applyOpen notes that a producer's transaction has written here.
func (s *Shard) applyOpen(by *machine.Producer) *producer {
	p := s.txns.see(by.ID, s.step.Now)
	p.epoch = by.Epoch
	if p.open == nil {
		p.open = &openTxn{offsets: map[offsetKey]struct{}{}}
	}
	return p
}

// applyPending applies a record of an open transaction. An offset waits for the
// transaction's end; whatever else Kafka may once write so counts at once.
func (s *Shard) applyPending(p *producer, r machine.Record) {
	o, ok := r.(*schema.OffsetRecord)
	if !ok || o.Value == nil {
		s.apply(r)
		return
	}
	g := s.groupFor(o.Group, true).Common()
	tp := subscription.TopicPartition{Topic: o.Topic, Partition: o.Partition}
	if g.Unstable == nil {
		g.Unstable = map[subscription.TopicPartition][]kind.Unstable{}
	}
	list := slices.DeleteFunc(g.Unstable[tp], func(u kind.Unstable) bool { return u.Producer == p.id })
	g.Unstable[tp] = append(list, kind.Unstable{Producer: p.id, Value: *o.Value})
	p.open.offsets[offsetKey{o.Group, tp}] = struct{}{}
	if o.Value.Start > 0 {
		p.open.start = o.Value.Start
	}
}

// applyMarker ends a producer's transaction. Nothing depends on the state that
// groups are in, or else an offset might wait for ever.
func (s *Shard) applyMarker(by *machine.Producer, c *machine.Control) *producer {
	p := s.txns.see(by.ID, s.step.Now)
	p.epoch, p.coordinatorEpoch, p.ended = by.Epoch, c.CoordinatorEpoch, 0
	open := p.open
	if open == nil {
		return p
	}
	p.open, p.ended = nil, open.start
	for _, key := range open.keys() {
		g := s.Groups[key.group]
		g.Common().End(p.id, key.TopicPartition, c.Commit)
		s.forgetIfGone(g)
	}
	return p
}

// overtake is what a plain record does to offsets of the same partition that wait
// for their transactions: a commit leaves them behind, and a tombstone takes them
// with it.
func (s *Shard) overtake(b *kind.Base, r *schema.OffsetRecord) {
	if len(b.Unstable) == 0 {
		return
	}
	tp := subscription.TopicPartition{Topic: r.Topic, Partition: r.Partition}
	list := b.Unstable[tp]
	for i := range list {
		list[i].Overtaken = true
		if r.Value == nil {
			delete(s.txns.producers[list[i].Producer].open.offsets, offsetKey{b.ID, tp})
		}
	}
	if r.Value == nil {
		b.KeepUnstable(tp, nil)
	}
}

// checkTxns finds what is wrong with what is known of transactions.
func (s *Shard) checkTxns(wrong *faults) {
	known := 0
	for _, id := range slices.Sorted(maps.Keys(s.txns.producers)) {
		p := s.txns.producers[id]
		if p.id != id {
			wrong.add("producer %d is listed as %d", p.id, id)
		}
		if p.open == nil {
			continue
		}
		for _, key := range p.open.keys() {
			g := s.Groups[key.group]
			if g == nil || !slices.ContainsFunc(g.Common().Unstable[key.TopicPartition], func(u kind.Unstable) bool { return u.Producer == id }) {
				wrong.add("producer %d has an offset of %v that its group does not have", id, key)
			}
			known++
		}
	}
	for _, id := range s.GroupIDs() {
		g := s.Groups[id].Common()
		for _, tp := range g.Waiting() {
			list := g.Unstable[tp]
			if len(list) == 0 {
				wrong.add("group %q waits for no transaction on %v", id, tp)
			}
			known -= len(list)
		}
	}
	if known != 0 {
		wrong.add("groups and producers differ by %d offsets that wait for a transaction", known)
	}
	s.txns.parked.check(wrong)
}

// check finds what is wrong with the requests that are parked.
func (k *parked) check(wrong *faults) {
	bytes, listed := 0, 0
	for _, id := range slices.Sorted(maps.Keys(k.byID)) {
		q := k.byID[id]
		bytes += q.bytes
		if !slices.Contains(k.byProducer[q.msg.ProducerID], q) {
			wrong.add("question %d is not listed under its producer", id)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(k.byProducer)) {
		listed += len(k.byProducer[id])
	}
	switch {
	case bytes != k.bytes:
		wrong.add("%d bytes are parked, counted are %d", bytes, k.bytes)
	case listed != len(k.byID):
		wrong.add("%d questions are open, %d are listed under their producers", len(k.byID), listed)
	case len(k.byID) > 0 && k.seq == 0:
		wrong.add("%d questions are open, and no timer waits for the answers", len(k.byID))
	}
}
