package group

import (
	"slices"

	"muster/internal/group/schema"
	"muster/internal/machine"
)

// applyConsumer changes the hard state of a consumer group, and what follows from
// it. Records may come in any order: a member is kept as long as any of its three
// is there, and the group as long as anything is.
func (s *Shard) applyConsumer(id string, positive bool, change func(*consumer)) {
	g := s.groupFor(id, positive)
	if g == nil || g.consumer == nil && !positive {
		return
	}
	if g.consumer == nil {
		g.consumer = newConsumer()
	}
	change(g.consumer)
	g.consumer.changes++
	if g.consumer.isGone() {
		g.consumer = nil
	}
	s.forgetIfGone(g)
}

// applyConsumerRecord applies a record, if it is a consumer group's.
func (s *Shard) applyConsumerRecord(r machine.Record) {
	switch r := r.(type) {
	case *schema.ConsumerEpochRecord:
		s.applyConsumer(r.Group, r.Value != nil, func(c *consumer) {
			if c.hasEpoch = r.Value != nil; c.hasEpoch {
				c.epoch, c.hash = r.Value.Epoch, r.Value.Hash
			} else {
				c.epoch, c.hash = firstEpoch, 0
			}
		})
	case *schema.ConsumerTargetEpochRecord:
		s.applyConsumer(r.Group, r.Value != nil, func(c *consumer) {
			if c.hasTarget = r.Value != nil; c.hasTarget {
				c.targetEpoch, c.targetAt = r.Value.Epoch, r.Value.Timestamp
			} else {
				c.targetEpoch, c.targetAt = firstEpoch, 0
			}
		})
	case *schema.ConsumerTopicsRecord:
		s.applyConsumer(r.Group, r.Live, func(c *consumer) { c.oldTopics = r.Live })
	case *schema.ConsumerMemberRecord:
		s.applyConsumer(r.Group, r.Value != nil, func(c *consumer) { c.applyMember(r.Member, r.Value) })
	case *schema.ConsumerTargetRecord:
		s.applyConsumer(r.Group, r.Value != nil, func(c *consumer) {
			c.change(r.Member, r.Value != nil, func(m *consumerMember) {
				if m.stored = r.Value != nil; m.stored {
					m.target = partsOf(r.Value.Assigned)
				} else {
					m.target = nil
				}
			})
		})
	case *schema.ConsumerCurrentRecord:
		s.applyConsumer(r.Group, r.Value != nil, func(c *consumer) { c.applyCurrent(r.Member, r.Value) })
	case *schema.ConsumerRegexRecord:
		s.applyConsumer(r.Group, r.Value != nil, func(c *consumer) {
			if r.Value == nil {
				delete(c.regexes, r.Regex)
				return
			}
			c.regexes[r.Regex] = &regex{topics: sortedNames(r.Value.Topics), version: r.Value.Version, at: r.Value.Timestamp}
		})
	}
}

// change changes a member, makes it if need be, and forgets it when nothing is left
// of it.
func (c *consumer) change(id string, positive bool, change func(*consumerMember)) {
	i, known := c.find(id)
	if !known && !positive {
		return
	}
	if !known {
		c.members = slices.Insert(c.members, i, &consumerMember{id: id})
	}
	m := c.members[i]
	change(m)
	if m.says == nil && m.current == nil && !m.stored {
		c.members = slices.Delete(c.members, i, i+1)
	}
}

// applyMember notes what a member says of itself.
func (c *consumer) applyMember(id string, says *schema.ConsumerMember) {
	c.change(id, says != nil, func(m *consumerMember) {
		if m.says != nil {
			c.count(m, -1)
		}
		if m.says = says; says != nil {
			c.count(m, 1)
		}
	})
}

// count counts a member with its subscription in or out.
func (c *consumer) count(m *consumerMember, n int) {
	c.present += n
	c.bytes += int64(n) * saysBytes(m)
	if classic := m.says.Classic; classic != nil {
		c.classic += n
		for i := range classic.Protocols {
			c.supported.add(classic.Protocols[i].Name, n)
		}
	}
	for _, name := range m.says.Topics {
		tally1(c.names, name, n)
	}
	if p := m.pattern(); p != "" {
		tally1(c.patterns, p, n)
	}
	if instance := m.says.Instance; instance != nil {
		switch {
		case n > 0:
			c.instances[*instance] = m
		case c.instances[*instance] == m:
			delete(c.instances, *instance)
		}
	}
}

// tally1 counts a name, and forgets it at zero.
func tally1(counts map[string]int, name string, n int) {
	if counts[name] += n; counts[name] == 0 {
		delete(counts, name)
	}
}

// pattern is the member's regular expression, "" for none.
func (mem *consumerMember) pattern() string {
	if mem.says == nil || mem.says.Regex == nil {
		return ""
	}
	return *mem.says.Regex
}

// applyCurrent notes where a member has got to.
func (c *consumer) applyCurrent(id string, v *schema.ConsumerCurrent) {
	c.change(id, v != nil, func(m *consumerMember) {
		if m.current != nil {
			c.own(m, m.current.assigned, false)
			c.own(m, m.current.pending, false)
		}
		if m.current = nil; v != nil {
			m.current = nowOf(v)
			c.own(m, m.current.assigned, true)
			c.own(m, m.current.pending, true)
		}
	})
}

// own notes that a member holds partitions, or does not any more. While a log is
// read it may seem that two hold one: then that member counts which is further on.
func (c *consumer) own(m *consumerMember, list []heldPart, holds bool) {
	for _, p := range list {
		switch owner := c.owners[p.part]; {
		case holds && owner != nil && owner.now().epoch > m.current.epoch:
		case holds:
			c.owners[p.part] = m
		case c.owners[p.part] == m:
			delete(c.owners, p.part)
		}
	}
}
