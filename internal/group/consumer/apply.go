package consumer

import (
	"slices"

	"muster/internal/group/modern"
	"muster/internal/group/schema"
)

// Replay changes the hard state of a consumer group, and what follows from it. Records may
// come in any order: a member is kept as long as any of its three is there, and the group
// as long as anything is.
func (g *Group) Replay(r schema.Record) {
	g.changes++
	switch r := r.(type) {
	case *schema.ConsumerEpochRecord:
		v := orZero(r.Value)
		g.SetEpoch(r.Value != nil, v.Epoch, v.Hash)
	case *schema.ConsumerTargetEpochRecord:
		v := orZero(r.Value)
		g.SetTarget(r.Value != nil, v.Epoch, v.Timestamp)
	case *schema.ConsumerTopicsRecord:
		g.oldTopics = r.Live
	case *schema.ConsumerMemberRecord:
		g.applyMember(r.Member, r.Value)
	case *schema.ConsumerTargetRecord:
		g.change(r.Member, r.Value != nil, func(m *Member) {
			if m.HasTarget = r.Value != nil; m.HasTarget {
				m.Target = modern.PartitionsOf(r.Value.Assigned)
			} else {
				m.Target = nil
			}
		})
	case *schema.ConsumerCurrentRecord:
		g.applyCurrent(r.Member, r.Value)
	case *schema.ConsumerRegexRecord:
		if r.Value == nil {
			delete(g.Regexes, r.Regex)
			return
		}
		g.Regexes[r.Regex] = &Regex{Topics: sortedNames(r.Value.Topics), version: r.Value.Version, at: r.Value.Timestamp}
	}
}

func orZero[T any](v *T) (out T) {
	if v != nil {
		out = *v
	}
	return out
}

// change changes a member, makes it if need be, and forgets it when nothing is left
// of it.
func (g *Group) change(id string, positive bool, change func(*Member)) {
	i, known := g.find(id)
	if !known && !positive {
		return
	}
	if !known {
		g.Members = slices.Insert(g.Members, i, &Member{Member: modern.Member{ID: id}})
	}
	m := g.Members[i]
	change(m)
	if m.Metadata == nil && !m.IsStored() {
		g.Members = slices.Delete(g.Members, i, i+1)
	}
}

// applyMember notes what a member says of itself.
func (g *Group) applyMember(id string, meta *schema.ConsumerMember) {
	g.change(id, meta != nil, func(m *Member) {
		if m.Metadata != nil {
			g.count(m, -1)
		}
		if m.Metadata = meta; meta != nil {
			g.count(m, 1)
		}
	})
}

// count counts a member with its subscription in or out.
func (g *Group) count(m *Member, n int) {
	g.Present += n
	g.bytes += int64(n) * memberBytes(m)
	if classic := m.Metadata.Classic; classic != nil {
		g.Classic += n
		for i := range classic.Protocols {
			g.Supported.Add(classic.Protocols[i].Name, n)
		}
	}
	for _, name := range m.Metadata.Topics {
		countName(g.Names, name, n)
	}
	if p := m.pattern(); p != "" {
		countName(g.Patterns, p, n)
	}
	if instance := m.Metadata.Instance; instance != nil {
		switch {
		case n > 0:
			g.Instances[*instance] = m
		case g.Instances[*instance] == m:
			delete(g.Instances, *instance)
		}
	}
}

// countName counts a name, and forgets it at zero.
func countName(counts map[string]int, name string, n int) {
	if counts[name] += n; counts[name] == 0 {
		delete(counts, name)
	}
}

// pattern is the member's regular expression, "" for none.
func (mem *Member) pattern() string {
	if mem.Metadata == nil || mem.Metadata.Regex == nil {
		return ""
	}
	return *mem.Metadata.Regex
}

// applyCurrent notes where a member has got to.
func (g *Group) applyCurrent(id string, v *schema.ConsumerCurrent) {
	g.change(id, v != nil, func(m *Member) {
		if m.Current != nil {
			g.own(m, m.Current.Assigned, false)
			g.own(m, m.Current.Pending, false)
		}
		if m.Current = nil; v != nil {
			m.Current = nowOf(v)
			g.own(m, m.Current.Assigned, true)
			g.own(m, m.Current.Pending, true)
		}
	})
}

// own notes that a member holds partitions, or does not any more. While a log is
// read it may seem that two hold one: then that member counts which is further on.
func (g *Group) own(m *Member, list []modern.Held, holds bool) {
	for _, p := range list {
		switch owner := g.Owners[p.Partition]; {
		case holds && owner != nil && owner.Now().Epoch > m.Current.Epoch:
		case holds:
			g.Owners[p.Partition] = m
		case g.Owners[p.Partition] == m:
			delete(g.Owners, p.Partition)
		}
	}
}
