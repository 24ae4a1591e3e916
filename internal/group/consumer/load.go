package consumer

import (
	"maps"
	"slices"

	"muster/internal/group/kind"
	"muster/internal/group/modern"
	"muster/internal/group/schema"
	"muster/internal/journal"
	"muster/internal/machine"
)

// resume makes a consumer group live after a load: every member has a whole session
// timeout to be heard of, or what is left of it (see kind.Base.SessionLeft), and one that
// has to let go of something a whole rebalance timeout for that. The topics are looked at
// with the first heartbeat. What clients know may be newer than what is stored: see
// after_load.go.
func (g *Group) resume(x *kind.Step) {
	for _, mem := range slices.Clone(g.Members) {
		if mem.Metadata == nil { // What is left of a member that is gone.
			g.removeMember(x, mem)
		}
	}
	for _, p := range slices.Sorted(maps.Keys(g.Regexes)) {
		if !g.Gone {
			g.forgetPatterns(x, p)
		}
	}
	g.afterLoad()
	if g.Account.Counted = g.Present; !g.Gone {
		g.settleOwners(x)
	}
	x.ForgetSilences(&g.Base, func(id string) bool { return g.Member(id) != nil })
	for _, mem := range g.Members {
		mem.Silent = x.SilentSince(&g.Base, mem.ID)
		mem.Wait(x, &g.Base, g.SessionLeft(mem.ID, g.sessionOf(x, mem)), g.sessionOf(x, mem))
		if mem.Now().State == modern.Unrevoked && mem.Metadata.Classic == nil {
			g.giveTimeToRevoke(x, mem)
		}
		mem.Since = x.Now
	}
	g.noteLoaded(x)
}

// settleOwners sees to it that every partition has one owner. Where two members say
// that they hold it, which no broker should have let happen, the one that is not as
// far on is fenced.
func (g *Group) settleOwners(x *kind.Step) {
	clear(g.Owners)
	for _, mem := range g.Members {
		now := mem.Now()
		g.own(mem, now.Assigned, true)
		g.own(mem, now.Pending, true)
	}
	for _, mem := range slices.Clone(g.Members) {
		now := mem.Now()
		others := func(p modern.Held) bool { return g.Owners[p.Partition] != mem }
		if slices.ContainsFunc(now.Assigned, others) || slices.ContainsFunc(now.Pending, others) {
			addMemberTrigger(x, journal.TriggerConflict, mem, nil)
			g.evict(x, mem)
		}
	}
}

// EachRecord gives all records of a consumer group, in Kafka's order.
func (g *Group) EachRecord(put func(machine.Record)) {
	for _, m := range g.Members {
		if m.Metadata != nil {
			put(&schema.ConsumerMemberRecord{Group: g.ID, Member: m.ID, Value: m.Metadata})
		}
	}
	for _, p := range slices.Sorted(maps.Keys(g.Regexes)) {
		r := g.Regexes[p]
		put(&schema.ConsumerRegexRecord{Group: g.ID, Regex: p, Value: &schema.ConsumerRegex{Topics: r.Topics, Version: r.version, Timestamp: r.at}})
	}
	if g.HasEpoch {
		put(&schema.ConsumerEpochRecord{Group: g.ID, Value: &schema.ConsumerEpoch{Epoch: g.Epoch, Hash: g.Hash}})
	}
	if g.oldTopics {
		put(&schema.ConsumerTopicsRecord{Group: g.ID, Live: true})
	}
	for _, m := range g.Members {
		if m.HasTarget {
			put(TargetRecord(g.ID, m.ID, m.Target))
		}
	}
	if g.HasTarget {
		put(&schema.ConsumerTargetEpochRecord{Group: g.ID, Value: &schema.ConsumerTargetEpoch{Epoch: g.TargetEpoch, Timestamp: g.TargetAt}})
	}
	for _, m := range g.Members {
		if m.Current != nil {
			put(CurrentRecord(g.ID, m.ID, m.Current))
		}
	}
}

// deleteGroupRecords removes a consumer group without members, all but its offsets.
func (g *Group) deleteGroupRecords(x *kind.Step) {
	var gone []machine.Record
	if g.HasTarget {
		gone = append(gone, &schema.ConsumerTargetEpochRecord{Group: g.ID})
	}
	for _, p := range slices.Sorted(maps.Keys(g.Regexes)) {
		gone = append(gone, &schema.ConsumerRegexRecord{Group: g.ID, Regex: p})
	}
	if g.oldTopics {
		gone = append(gone, &schema.ConsumerTopicsRecord{Group: g.ID})
	}
	if g.HasEpoch {
		gone = append(gone, &schema.ConsumerEpochRecord{Group: g.ID})
	}
	for _, r := range gone {
		x.Write(r)
	}
}
