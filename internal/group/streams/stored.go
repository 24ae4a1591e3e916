package streams

import (
	"strconv"

	"muster/internal/group/kind"
	"muster/internal/group/modern"
	"muster/internal/group/schema"
	"muster/internal/machine"
)

func (g *Group) MemberRecord(id string, m *Member) schema.Record {
	r := &schema.StreamsMemberRecord{Group: g.ID, Member: id}
	if m != nil {
		r.Value = m.Metadata
	}
	return r
}

// EpochRecord is what is stored with an epoch: of another than the group has, what was found
// out since.
func (g *Group) EpochRecord(v *modern.Epoch) schema.Record {
	r := &schema.StreamsEpochRecord{Group: g.ID}
	if v == nil {
		return r
	}
	with := found{g.Validated, g.Standbys}
	if v.Epoch != g.Epoch || !g.HasEpoch {
		with = g.next
	}
	r.Value = &schema.StreamsEpoch{Epoch: v.Epoch, Hash: v.Hash, Validated: with.validated, Configs: []schema.KeyValue{{Key: standbysKey, Value: strconv.Itoa(with.standbys)}}}
	return r
}

func (g *Group) TargetEpochRecord(v *modern.TargetEpoch) schema.Record {
	r := &schema.StreamsTargetEpochRecord{Group: g.ID}
	if v != nil {
		r.Value = &schema.StreamsTargetEpoch{Epoch: v.Epoch, Timestamp: v.At}
	}
	return r
}

func (g *Group) TargetRecord(member string, v *modern.TargetOf[Task]) schema.Record {
	r := &schema.StreamsTargetRecord{Group: g.ID, Member: member}
	if v != nil {
		r.Value = targetOf(v.Parts)
	}
	return r
}

func (g *Group) CurrentRecord(member string, v *Current) schema.Record {
	r := &schema.StreamsCurrentRecord{Group: g.ID, Member: member}
	if v != nil {
		has, pending := ownedOf(v.Assigned), ownedOf(v.Pending)
		r.Value = &schema.StreamsCurrent{
			Epoch: v.Epoch, Previous: v.Previous, State: int8(v.State) + firstState, Active: has[Active], Standby: has[Standby], Warmup: has[Warmup],
			PendingActive: pending[Active], PendingStandby: pending[Standby], PendingWarmup: pending[Warmup],
		}
	}
	return r
}

// OtherRecords is that of the topology.
func (g *Group) OtherRecords(live bool) []schema.Record {
	if g.Topology == nil {
		return nil
	}
	r := &schema.StreamsTopologyRecord{Group: g.ID}
	if live {
		r.Value = g.Topology
	}
	return []schema.Record{r}
}

// What the tasks of a subtopology in one role, and a task, take at most in the record of what a
// member has, besides the subtopology's id. They may be there twice, among what is assigned and
// what is to be let go of.
const (
	subtopologyBytes = 40
	taskBytes        = 8
	maxNowBytes      = 60 // beyond those
)

// FitsHeld says whether it can be stored that a member has these tasks, and also, for each,
// that it is to let go of it.
func (g *Group) FitsHeld(x *kind.Step, member string, list []Task) bool {
	if x.MaxBatch <= 0 {
		return true
	}
	n := machine.RecordOverhead + (&schema.StreamsCurrentRecord{Group: g.ID, Member: member}).Size() + maxNowBytes + taskBytes*len(list)
	grouped(list, func(_ Role, subtopology string, _ []Task) { n += 2 * (subtopologyBytes + len(subtopology)) })
	return n <= x.MaxBatch
}

// taskWeight is what a task is counted for that a member has, or is to have, in some role. The
// requests from which there are that many are small.
const taskWeight = 350

// memberBytes is what a member is counted for.
func memberBytes(m *Member) int64 {
	return kind.MemberBytes + int64((&schema.StreamsMemberRecord{Member: m.ID, Value: m.Metadata}).Size())
}

// What a subtopology takes besides what is said of it, and an internal topic.
const (
	subtopologyWeight   = 200
	internalTopicWeight = 150
)

// topologyBytes is what a topology is counted for.
func topologyBytes(t *schema.StreamsTopology) int64 {
	if t == nil {
		return 0
	}
	n := (&schema.StreamsTopologyRecord{Value: t}).Size() + subtopologyWeight*len(t.Subtopologies)
	for i := range t.Subtopologies {
		n += internalTopicWeight * (len(t.Subtopologies[i].Changelogs) + len(t.Subtopologies[i].Repartitions))
	}
	return int64(n)
}
