package consumer

import (
	"maps"
	"slices"

	"muster/internal/group/kind"
	"muster/internal/group/modern"
	"muster/internal/group/schema"
	"muster/internal/machine"
)

// nowOf reads where a member has got to.
func nowOf(v *schema.ConsumerCurrent) *Current {
	if v == nil {
		return nil
	}
	return &Current{
		Epoch: v.Epoch, Previous: v.Previous, State: modern.MemberState(v.State),
		Assigned: modern.HeldOf(v.Assigned, v.Epoch), Pending: modern.HeldOf(v.Pending, v.Epoch),
	}
}

// TargetRecord is the record of a member's target.
func TargetRecord(group, member string, target []Partition) *schema.ConsumerTargetRecord {
	return &schema.ConsumerTargetRecord{Group: group, Member: member, Value: &schema.ConsumerTarget{Assigned: modern.TopicsOf(target)}}
}

// CurrentRecord is the record of where a member has got to.
func CurrentRecord(group, member string, now *Current) *schema.ConsumerCurrentRecord {
	return &schema.ConsumerCurrentRecord{Group: group, Member: member, Value: &schema.ConsumerCurrent{
		Epoch: now.Epoch, Previous: now.Previous, State: int8(now.State), Assigned: modern.OwnedOf(now.Assigned), Pending: modern.OwnedOf(now.Pending),
	}}
}

func (g *Group) MemberRecord(id string, mem *Member) schema.Record {
	r := &schema.ConsumerMemberRecord{Group: g.ID, Member: id}
	if mem != nil {
		r.Value = mem.Metadata
	}
	return r
}

func (g *Group) EpochRecord(v *modern.Epoch) schema.Record {
	r := &schema.ConsumerEpochRecord{Group: g.ID}
	if v != nil {
		r.Value = &schema.ConsumerEpoch{Epoch: v.Epoch, Hash: v.Hash}
	}
	return r
}

func (g *Group) TargetEpochRecord(v *modern.TargetEpoch) schema.Record {
	r := &schema.ConsumerTargetEpochRecord{Group: g.ID}
	if v != nil {
		r.Value = &schema.ConsumerTargetEpoch{Epoch: v.Epoch, Timestamp: v.At}
	}
	return r
}

func (g *Group) TargetRecord(member string, v *modern.TargetOf[Partition]) schema.Record {
	if v == nil {
		return &schema.ConsumerTargetRecord{Group: g.ID, Member: member}
	}
	return TargetRecord(g.ID, member, v.Parts)
}

func (g *Group) CurrentRecord(member string, v *Current) schema.Record {
	if v == nil {
		return &schema.ConsumerCurrentRecord{Group: g.ID, Member: member}
	}
	return CurrentRecord(g.ID, member, v)
}

// OtherRecords are those of patterns, and one of an older Kafka.
func (g *Group) OtherRecords(live bool) (out []schema.Record) {
	for _, p := range slices.Sorted(maps.Keys(g.Regexes)) {
		r := &schema.ConsumerRegexRecord{Group: g.ID, Regex: p}
		if found := g.Regexes[p]; live {
			r.Value = &schema.ConsumerRegex{Topics: found.Topics, Version: found.version, Timestamp: found.at}
		}
		out = append(out, r)
	}
	if g.oldTopics {
		out = append(out, &schema.ConsumerTopicsRecord{Group: g.ID, Live: live})
	}
	return out
}

// What a topic and a partition take at most in the record of what a member has: the
// topic its id, and the lengths of two lists; the partition its number and the epoch in
// which it was given. A topic may be there twice, among what is assigned and what is to
// be let go of.
const (
	maxTopicBytes = 2 * 40
	partBytes     = 8
	maxNowBytes   = 36 // beyond those
)

// FitsHeld says whether it can be stored that a member has these partitions, and also,
// for each, that it is to let go of it. A member never has more than what it was to
// have once, so what fits as a target fits for good.
func (g *Group) FitsHeld(x *kind.Step, member string, list []Partition) bool {
	return fitsHeld(x, g.ID, member, list)
}

func fitsHeld(x *kind.Step, group, member string, list []Partition) bool {
	if x.MaxBatch <= 0 {
		return true
	}
	n := machine.RecordOverhead + (&schema.ConsumerCurrentRecord{Group: group, Member: member}).Size() + maxNowBytes
	for i, p := range list {
		if n += partBytes; i == 0 || p.Topic != list[i-1].Topic {
			n += maxTopicBytes
		}
	}
	return n <= x.MaxBatch
}
