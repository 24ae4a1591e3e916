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
func (x *step) wakeConsumers(g *group) {
	c := g.consumer
	for _, mem := range slices.Clone(c.members) {
		if mem.says == nil { // What is left of a member that is gone.
			x.removeConsumer(g, mem)
		}
	}
	for _, p := range slices.Sorted(maps.Keys(c.regexes)) {
		if g.consumer != nil {
			x.forgetPatterns(g, p)
		}
	}
	c.afterLoad()
	if c.story.counted = c.present; g.consumer != nil {
		x.settleOwners(g)
	}
	x.forgetSilences(g, func(id string) bool { return c.member(id) != nil })
	for _, mem := range c.members {
		mem.silent = x.silentSince(g, mem.id)
		x.waitForBeat(g, mem, g.patienceWith(mem.id, x.sessionOf(g, mem)))
		if mem.now().state == memberUnrevoked && mem.says.Classic == nil {
			x.giveTimeToRevoke(g, mem)
		}
		mem.told = x.now
	}
	x.noteLoaded(g)
}

// settleOwners sees to it that every partition has one owner. Where two members say
// that they hold it, which no broker should have let happen, the one that is not as
// far on is fenced.
func (x *step) settleOwners(g *group) {
	c := g.consumer
	clear(c.owners)
	for _, mem := range c.members {
		now := mem.now()
		c.own(mem, now.assigned, true)
		c.own(mem, now.pending, true)
	}
	for _, mem := range slices.Clone(c.members) {
		now := mem.now()
		others := func(p heldPart) bool { return c.owners[p.part] != mem }
		if slices.ContainsFunc(now.assigned, others) || slices.ContainsFunc(now.pending, others) {
			x.blameMember(journal.TriggerConflict, mem, nil)
			x.evict(g, mem)
		}
	}
}

// leaveClassic turns an empty classic group into one that has only offsets, which
// a consumer group takes over.
func (x *step) leaveClassic(id string) {
	g := x.groups[id]
	if g == nil || g.consumer != nil {
		return
	}
	for pending := range g.pendingIDs() {
		x.forgetPending(g, pending)
	}
	x.forgetUnsettled(g)
	if g.hard != nil {
		x.write(&schema.GroupRecord{Group: id})
	}
	g.protocolType, g.generation = "", 0
}

// eachConsumer gives all records of a consumer group, in Kafka's order.
func (g *group) eachConsumer(put func(machine.Record)) {
	c := g.consumer
	if c == nil {
		return
	}
	for _, m := range c.members {
		if m.says != nil {
			put(&schema.ConsumerMemberRecord{Group: g.id, Member: m.id, Value: m.says})
		}
	}
	for _, p := range slices.Sorted(maps.Keys(c.regexes)) {
		r := c.regexes[p]
		put(&schema.ConsumerRegexRecord{Group: g.id, Regex: p, Value: &schema.ConsumerRegex{Topics: r.topics, Version: r.version, Timestamp: r.at}})
	}
	if c.hasEpoch {
		put(&schema.ConsumerEpochRecord{Group: g.id, Value: &schema.ConsumerEpoch{Epoch: c.epoch, Hash: c.hash}})
	}
	if c.oldTopics {
		put(&schema.ConsumerTopicsRecord{Group: g.id, Live: true})
	}
	for _, m := range c.members {
		if m.stored {
			put(targetRecord(g.id, m.id, m.target))
		}
	}
	if c.hasTarget {
		put(&schema.ConsumerTargetEpochRecord{Group: g.id, Value: &schema.ConsumerTargetEpoch{Epoch: c.targetEpoch, Timestamp: c.targetAt}})
	}
	for _, m := range c.members {
		if m.current != nil {
			put(currentRecord(g.id, m.id, m.current))
		}
	}
}

// forgetConsumers removes a consumer group without members, all but its offsets.
func (x *step) forgetConsumers(g *group) {
	c := g.consumer
	if c == nil {
		return
	}
	var gone []machine.Record
	if c.hasTarget {
		gone = append(gone, &schema.ConsumerTargetEpochRecord{Group: g.id})
	}
	for _, p := range slices.Sorted(maps.Keys(c.regexes)) {
		gone = append(gone, &schema.ConsumerRegexRecord{Group: g.id, Regex: p})
	}
	if c.oldTopics {
		gone = append(gone, &schema.ConsumerTopicsRecord{Group: g.id})
	}
	if c.hasEpoch {
		gone = append(gone, &schema.ConsumerEpochRecord{Group: g.id})
	}
	for _, r := range gone {
		x.write(r)
	}
}
