package group

import (
	"maps"
	"slices"

	"muster/internal/group/schema"
	"muster/internal/journal"
	"muster/internal/machine"
)

// wakeConsumers makes a consumer group live after a load: everybody has a whole
// session timeout to be heard of, or what is left of it (see silence.go), and whoever has to let go of something a whole
// rebalance timeout for that. The topics are looked at with the first heartbeat. What
// clients know may be newer than what is stored: see consumer_leap.go.
func (g *consumerGroup) wakeConsumers(x *step) {
	for _, mem := range slices.Clone(g.members) {
		if mem.says == nil { // What is left of a member that is gone.
			g.removeConsumer(x, mem)
		}
	}
	for _, p := range slices.Sorted(maps.Keys(g.regexes)) {
		if !g.gone {
			g.forgetPatterns(x, p)
		}
	}
	g.afterLoad()
	if g.story.counted = g.present; !g.gone {
		g.settleOwners(x)
	}
	x.forgetSilences(&g.base, func(id string) bool { return g.member(id) != nil })
	for _, mem := range g.members {
		mem.silent = x.silentSince(&g.base, mem.id)
		g.waitForBeat(x, mem, g.patienceWith(mem.id, g.sessionOf(x, mem)))
		if mem.now().state == memberUnrevoked && mem.says.Classic == nil {
			g.giveTimeToRevoke(x, mem)
		}
		mem.told = x.now
	}
	g.noteLoaded(x)
}

// settleOwners sees to it that every partition has one owner. Where two members say
// that they hold it, which no broker should have let happen, the one that is not as
// far on is fenced.
func (g *consumerGroup) settleOwners(x *step) {
	clear(g.owners)
	for _, mem := range g.members {
		now := mem.now()
		g.own(mem, now.assigned, true)
		g.own(mem, now.pending, true)
	}
	for _, mem := range slices.Clone(g.members) {
		now := mem.now()
		others := func(p heldPart) bool { return g.owners[p.part] != mem }
		if slices.ContainsFunc(now.assigned, others) || slices.ContainsFunc(now.pending, others) {
			blameMember(x, journal.TriggerConflict, mem, nil)
			g.evict(x, mem)
		}
	}
}

// eachRecord gives all records of a consumer group, in Kafka's order.
func (g *consumerGroup) eachRecord(put func(machine.Record)) {
	for _, m := range g.members {
		if m.says != nil {
			put(&schema.ConsumerMemberRecord{Group: g.id, Member: m.id, Value: m.says})
		}
	}
	for _, p := range slices.Sorted(maps.Keys(g.regexes)) {
		r := g.regexes[p]
		put(&schema.ConsumerRegexRecord{Group: g.id, Regex: p, Value: &schema.ConsumerRegex{Topics: r.topics, Version: r.version, Timestamp: r.at}})
	}
	if g.hasEpoch {
		put(&schema.ConsumerEpochRecord{Group: g.id, Value: &schema.ConsumerEpoch{Epoch: g.epoch, Hash: g.hash}})
	}
	if g.oldTopics {
		put(&schema.ConsumerTopicsRecord{Group: g.id, Live: true})
	}
	for _, m := range g.members {
		if m.stored {
			put(targetRecord(g.id, m.id, m.target))
		}
	}
	if g.hasTarget {
		put(&schema.ConsumerTargetEpochRecord{Group: g.id, Value: &schema.ConsumerTargetEpoch{Epoch: g.targetEpoch, Timestamp: g.targetAt}})
	}
	for _, m := range g.members {
		if m.current != nil {
			put(currentRecord(g.id, m.id, m.current))
		}
	}
}

// forgetConsumers removes a consumer group without members, all but its offsets.
func (g *consumerGroup) forgetConsumers(x *step) {
	var gone []machine.Record
	if g.hasTarget {
		gone = append(gone, &schema.ConsumerTargetEpochRecord{Group: g.id})
	}
	for _, p := range slices.Sorted(maps.Keys(g.regexes)) {
		gone = append(gone, &schema.ConsumerRegexRecord{Group: g.id, Regex: p})
	}
	if g.oldTopics {
		gone = append(gone, &schema.ConsumerTopicsRecord{Group: g.id})
	}
	if g.hasEpoch {
		gone = append(gone, &schema.ConsumerEpochRecord{Group: g.id})
	}
	for _, r := range gone {
		x.write(r)
	}
}
