package consumer

import (
	"slices"

	"muster/internal/group/kind"
	"muster/internal/group/modern"
	"muster/internal/group/schema"
)

// Replay changes the hard state of a consumer group, and what follows from it. Records may
// come in any order: a member is kept as long as any of its three is there, and the group
// as long as anything is.
func (g *Group) Replay(r schema.Record) {
	g.Changes++
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
		g.ApplyMember(r.Member, r.Value != nil, func(m *Member) { m.Metadata = r.Value })
	case *schema.ConsumerTargetRecord:
		g.ApplyTarget(r.Member, r.Value != nil, modern.PartitionsOf(orZero(r.Value).Assigned))
	case *schema.ConsumerCurrentRecord:
		g.ApplyCurrent(r.Member, nowOf(r.Value))
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

// Count counts a member with its subscription in or out.
func (g *Group) Count(m *Member, n int) {
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
}

// countName counts a name, and forgets it at zero.
func countName(counts map[string]int, name string, n int) {
	if counts[name] += n; counts[name] == 0 {
		delete(counts, name)
	}
}

// Hold notes that a member holds partitions, or does not any more. While a log is
// read it may seem that two hold one: then that member counts which is further on.
func (g *Group) Hold(m *Member, holds bool) {
	for _, list := range [][]Held{m.Current.Assigned, m.Current.Pending} {
		for _, p := range list {
			switch owner := g.Owners[p.Part]; {
			case holds && owner != nil && owner.Now().Epoch > m.Current.Epoch:
			case holds:
				g.Owners[p.Part] = m
			case g.Owners[p.Part] == m:
				delete(g.Owners, p.Part)
			}
		}
	}
}

// SettleOwners sees to it that every partition has one owner. Where two members say
// that they hold it, which no broker should have let happen, the one that is not as
// far on is fenced.
func (g *Group) SettleOwners(x *kind.Step) {
	clear(g.Owners)
	for _, mem := range g.Members {
		if mem.Current != nil {
			g.Hold(mem, true)
		}
	}
	for _, mem := range slices.Clone(g.Members) {
		now := mem.Now()
		others := func(p Held) bool { return g.Owners[p.Part] != mem }
		if slices.ContainsFunc(now.Assigned, others) || slices.ContainsFunc(now.Pending, others) {
			g.EvictConflict(x, mem)
		}
	}
}
