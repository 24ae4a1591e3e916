package group

import (
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/schema"
	"muster/internal/journal"
	"muster/internal/machine"
	"muster/internal/metadata"
)

// A consumer group in which nobody uses the consumer protocol any more becomes a classic
// one: its members do not know that it ever was another. Its generation is the group's
// epoch, and offsets stay. Everybody is assigned what they have: Kafka takes the target,
// but what somebody was yet to let go of would be another's then, should the group be
// upgraded again before all have joined. They get what they should in the rebalance; if
// there is none, it is the same.

// downgraded is the classic group that a consumer group becomes.
type downgraded struct {
	*classicGroup
	records []machine.Record // the last says that it rebalances
}

// classicOf returns the classic group that a consumer group becomes without a member,
// who may be nil for nobody, or nil if it stays what it is: somebody uses the consumer
// protocol, nobody is left, there are too many for a classic group, or the policy says so.
// Whoever has just joined leads it, if anybody has.
func (g *consumerGroup) classicOf(x *step, gone *consumerMember, joins string) *downgraded {
	left, classic := g.present, g.classic
	if gone != nil {
		if left--; gone.says.Classic != nil {
			classic--
		}
	}
	if !x.cfg.Consumer.Migration.Downgrades() || left == 0 || left != classic || left > x.cfg.MaxSize {
		return nil
	}
	now := stays{changes: g.changes, maxBatch: x.maxBatch, image: x.image, gone: gone}
	if g.stays != nil && *g.stays == now {
		return nil
	}
	to := g.asClassicGroup(x, gone, joins)
	if g.stays = nil; to == nil {
		known := now
		g.stays = &known
	}
	return to
}

// stays is with what a consumer group could not become a classic one though all its
// members are of the classic protocol: they support no protocol in common, or it is too
// large for a record. To find that out takes all that is known of all members, and they
// join again and again: until something of this is different the answer is the same.
type stays struct {
	changes  uint64
	maxBatch int
	image    *metadata.Image
	gone     *consumerMember
}

// asClassicGroup makes the classic group that a consumer group becomes, nil if it cannot.
func (g *consumerGroup) asClassicGroup(x *step, gone *consumerMember, joins string) *downgraded {
	to := newClassicGroup(base{id: g.id})
	for _, mem := range g.members {
		if mem != gone && mem.says != nil {
			to.add(mem.asClassic(), consumerType)
		}
	}
	if joins != "" {
		to.leader = joins
	}
	if to.protocol = to.vote(); to.protocol == "" {
		return nil
	}
	for m := to.members.first; m != nil; m = m.next {
		now := g.member(m.id).now()
		m.assigned = assignmentBytes(x.image, placesOf(merged(now.assigned, now.pending)), m.metadata(to.protocol))
	}
	to.generation = g.epoch
	rebalances := &schema.Rebalance{Generation: to.generation}
	if g.leaps { // The next generation must leap as the next epoch would.
		to.leaps, to.leapsFrom, rebalances.Lives = true, to.generation, 1
	}
	to.previous, to.state, to.since = CompletingRebalance, Stable, x.now.UnixMilli()
	out := &downgraded{to, append(g.consumerTombstones(), to.record())}
	out.records = append(out.records, &schema.RebalanceRecord{Group: g.id, Value: rebalances})
	if x.maxBatch > 0 && (&machine.Batch{Records: out.records, Whole: true}).Size() > x.maxBatch {
		return nil
	}
	return out
}

// asClassic is a member of the classic protocol as a classic group knows it.
func (mem *consumerMember) asClassic() *member {
	says := mem.says
	m := &member{
		id: mem.id, instance: says.Instance, clientID: says.ClientID, host: says.Host,
		rebalance: mem.rebalanceTimeout(), session: time.Duration(says.Classic.SessionTimeoutMillis) * time.Millisecond, silent: mem.silent,
	}
	for _, p := range says.Classic.Protocols {
		m.protocols = append(m.protocols, protocol{p.Name, p.Metadata})
	}
	return m
}

// consumerTombstones removes everything of a consumer group but its offsets, in the
// order in which Kafka does.
func (g *consumerGroup) consumerTombstones() (out []machine.Record) {
	for _, m := range g.members {
		if m.current != nil {
			out = append(out, &schema.ConsumerCurrentRecord{Group: g.id, Member: m.id})
		}
	}
	for _, m := range g.members {
		if m.stored {
			out = append(out, &schema.ConsumerTargetRecord{Group: g.id, Member: m.id})
		}
	}
	if g.hasTarget {
		out = append(out, &schema.ConsumerTargetEpochRecord{Group: g.id})
	}
	for _, m := range g.members {
		if m.says != nil {
			out = append(out, &schema.ConsumerMemberRecord{Group: g.id, Member: m.id})
		}
	}
	for _, p := range slices.Sorted(maps.Keys(g.regexes)) {
		out = append(out, &schema.ConsumerRegexRecord{Group: g.id, Regex: p})
	}
	if g.oldTopics {
		out = append(out, &schema.ConsumerTopicsRecord{Group: g.id})
	}
	if g.hasEpoch {
		out = append(out, &schema.ConsumerEpochRecord{Group: g.id})
	}
	return out
}

// downgrade makes a classic group of a consumer group, and returns it. It is Stable; if
// it is not to be left alone, who calls has it rebalance. That it does is in the same
// batch: else it might be loaded without, and nobody would get what the member had that
// is gone.
func (g *consumerGroup) downgrade(x *step, to *downgraded, quiet bool) *classicGroup {
	for _, mem := range g.members {
		g.stopWaiting(x, mem)
	}
	g.dropRun(x)
	if quiet {
		to.records = to.records[:len(to.records)-1]
	}
	x.writeWhole(to.records)
	next := x.groups[g.id].(*classicGroup)
	next.adopt(x, to.classicGroup)
	return next
}

// joinDowngraded answers the member whose join was the reason. If nothing is to change
// for anybody there is no rebalance, and it gets what its predecessor was to have. It is
// told that it leads: in a consumer group nobody does, and nobody else would see to it that
// the group rebalances when its topics change. Versions that cannot be told to leave the
// assignment alone have a rebalance. Kafka tells nobody.
func (g *classicGroup) joinDowngraded(x *step, id string, r *machine.Request, m *kmsg.JoinGroupRequest, quiet bool) {
	mem := g.members.get(id)
	if quiet {
		resp := g.joinResponse(mem, m.Version)
		resp.SkipAssignment = true
		x.reply(r.ID, resp)
		return
	}
	mem.join, mem.joinVersion, mem.asked = r.ID, m.Version, x.now.UnixMilli()
	g.joined++
	g.prepareRebalance(x, trigger(journal.TriggerReplaced, mem, m.Reason))
}
