package group

import (
	"slices"

	"muster/internal/group/schema"
)

// replay changes the hard state of a consumer group, and what follows from it. Records may
// come in any order: a member is kept as long as any of its three is there, and the group
// as long as anything is.
func (g *consumerGroup) replay(r schema.Record) {
	g.changes++
	switch r := r.(type) {
	case *schema.ConsumerEpochRecord:
		if g.hasEpoch = r.Value != nil; g.hasEpoch {
			g.epoch, g.hash = r.Value.Epoch, r.Value.Hash
		} else {
			g.epoch, g.hash = firstEpoch, 0
		}
	case *schema.ConsumerTargetEpochRecord:
		if g.hasTarget = r.Value != nil; g.hasTarget {
			g.targetEpoch, g.targetAt = r.Value.Epoch, r.Value.Timestamp
		} else {
			g.targetEpoch, g.targetAt = firstEpoch, 0
		}
	case *schema.ConsumerTopicsRecord:
		g.oldTopics = r.Live
	case *schema.ConsumerMemberRecord:
		g.applyMember(r.Member, r.Value)
	case *schema.ConsumerTargetRecord:
		g.change(r.Member, r.Value != nil, func(m *consumerMember) {
			if m.stored = r.Value != nil; m.stored {
				m.target = partsOf(r.Value.Assigned)
			} else {
				m.target = nil
			}
		})
	case *schema.ConsumerCurrentRecord:
		g.applyCurrent(r.Member, r.Value)
	case *schema.ConsumerRegexRecord:
		if r.Value == nil {
			delete(g.regexes, r.Regex)
			return
		}
		g.regexes[r.Regex] = &regex{topics: sortedNames(r.Value.Topics), version: r.Value.Version, at: r.Value.Timestamp}
	}
}

// change changes a member, makes it if need be, and forgets it when nothing is left
// of it.
func (g *consumerGroup) change(id string, positive bool, change func(*consumerMember)) {
	i, known := g.find(id)
	if !known && !positive {
		return
	}
	if !known {
		g.members = slices.Insert(g.members, i, &consumerMember{id: id})
	}
	m := g.members[i]
	change(m)
	if m.says == nil && m.current == nil && !m.stored {
		g.members = slices.Delete(g.members, i, i+1)
	}
}

// applyMember notes what a member says of itself.
func (g *consumerGroup) applyMember(id string, says *schema.ConsumerMember) {
	g.change(id, says != nil, func(m *consumerMember) {
		if m.says != nil {
			g.count(m, -1)
		}
		if m.says = says; says != nil {
			g.count(m, 1)
		}
	})
}

// count counts a member with its subscription in or out.
func (g *consumerGroup) count(m *consumerMember, n int) {
	g.present += n
	g.bytes += int64(n) * saysBytes(m)
	if classic := m.says.Classic; classic != nil {
		g.classic += n
		for i := range classic.Protocols {
			g.supported.add(classic.Protocols[i].Name, n)
		}
	}
	for _, name := range m.says.Topics {
		tally1(g.names, name, n)
	}
	if p := m.pattern(); p != "" {
		tally1(g.patterns, p, n)
	}
	if instance := m.says.Instance; instance != nil {
		switch {
		case n > 0:
			g.instances[*instance] = m
		case g.instances[*instance] == m:
			delete(g.instances, *instance)
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
func (g *consumerGroup) applyCurrent(id string, v *schema.ConsumerCurrent) {
	g.change(id, v != nil, func(m *consumerMember) {
		if m.current != nil {
			g.own(m, m.current.assigned, false)
			g.own(m, m.current.pending, false)
		}
		if m.current = nil; v != nil {
			m.current = nowOf(v)
			g.own(m, m.current.assigned, true)
			g.own(m, m.current.pending, true)
		}
	})
}

// own notes that a member holds partitions, or does not any more. While a log is
// read it may seem that two hold one: then that member counts which is further on.
func (g *consumerGroup) own(m *consumerMember, list []heldPart, holds bool) {
	for _, p := range list {
		switch owner := g.owners[p.part]; {
		case holds && owner != nil && owner.now().epoch > m.current.epoch:
		case holds:
			g.owners[p.part] = m
		case g.owners[p.part] == m:
			delete(g.owners, p.part)
		}
	}
}
