package share

import (
	"muster/internal/group/kind"
	"muster/internal/group/modern"
	"muster/internal/group/schema"
	"muster/internal/machine"
)

// Replay changes the hard state of a share group, and what follows from it. Records may come in
// any order.
func (g *Group) Replay(r schema.Record) {
	g.Changes++
	switch r := r.(type) {
	case *schema.ShareMemberRecord:
		g.ApplyMember(r.Member, r.Value != nil, func(m *Member) { m.Metadata = r.Value })
	case *schema.ShareEpochRecord:
		v := orZero(r.Value)
		g.SetEpoch(r.Value != nil, v.Epoch, v.Hash)
	case *schema.ShareTargetEpochRecord:
		v := orZero(r.Value)
		g.SetTarget(r.Value != nil, v.Epoch, v.Timestamp)
	case *schema.ShareTargetRecord:
		g.ApplyTarget(r.Member, r.Value != nil, modern.PartitionsOf(orZero(r.Value).Assigned))
	case *schema.ShareCurrentRecord:
		g.ApplyCurrent(r.Member, nowOf(r.Value))
	case *schema.ShareTopicsRecord:
		g.topics.set(r.Value)
		g.looked, g.untested = looked{}, true
	}
}

func orZero[T any](v *T) (out T) {
	if v != nil {
		out = *v
	}
	return out
}

// nowOf reads where a member has got to. Since when it has a partition is not stored, and does
// not matter.
func nowOf(v *schema.ShareCurrent) *current {
	if v == nil {
		return nil
	}
	now := &current{Epoch: v.Epoch, Previous: v.Previous, State: modern.MemberState(v.State)}
	for _, p := range modern.PartitionsOf(v.Assigned) {
		now.Assigned = append(now.Assigned, held{Part: p})
	}
	return now
}

func (g *Group) MemberRecord(id string, mem *Member) schema.Record {
	r := &schema.ShareMemberRecord{Group: g.ID, Member: id}
	if mem != nil {
		r.Value = mem.Metadata
	}
	return r
}

func (g *Group) EpochRecord(v *modern.Epoch) schema.Record {
	r := &schema.ShareEpochRecord{Group: g.ID}
	if v != nil {
		r.Value = &schema.ShareEpoch{Epoch: v.Epoch, Hash: v.Hash}
	}
	return r
}

func (g *Group) TargetEpochRecord(v *modern.TargetEpoch) schema.Record {
	r := &schema.ShareTargetEpochRecord{Group: g.ID}
	if v != nil {
		r.Value = &schema.ShareTargetEpoch{Epoch: v.Epoch, Timestamp: v.At}
	}
	return r
}

func (g *Group) TargetRecord(member string, v *modern.TargetOf[partition]) schema.Record {
	r := &schema.ShareTargetRecord{Group: g.ID, Member: member}
	if v != nil {
		r.Value = &schema.ShareTarget{Assigned: modern.TopicsOf(v.Parts)}
	}
	return r
}

func (g *Group) CurrentRecord(member string, v *current) schema.Record {
	r := &schema.ShareCurrentRecord{Group: g.ID, Member: member}
	if v != nil {
		r.Value = &schema.ShareCurrent{Epoch: v.Epoch, Previous: v.Previous, State: int8(v.State), Assigned: modern.TopicsOf(modern.PartsHeld(v.Assigned))}
	}
	return r
}

// OtherRecords is the one about the share coordinator.
func (g *Group) OtherRecords(live bool) []schema.Record {
	if !g.topics.stored {
		return nil
	}
	r := &schema.ShareTopicsRecord{Group: g.ID}
	if live {
		r.Value = g.topics.value()
	}
	return []schema.Record{r}
}

// What a topic and a partition take at most in the record of what a member has.
const (
	topicBytes  = 40
	partBytes   = 4
	maxNowBytes = 36 // beyond those
)

// FitsHeld says whether it can be stored that a member has these partitions.
func (g *Group) FitsHeld(x *kind.Step, member string, list []partition) bool {
	if x.MaxBatch <= 0 {
		return true
	}
	n := machine.RecordOverhead + (&schema.ShareCurrentRecord{Group: g.ID, Member: member}).Size() + maxNowBytes
	for i, p := range list {
		if n += partBytes; i == 0 || p.Topic != list[i-1].Topic {
			n += topicBytes
		}
	}
	return n <= x.MaxBatch
}
