package group

import (
	"slices"

	"muster/internal/group/schema"
)

// partsOf reads the partitions of a target.
func partsOf(topics []schema.TopicPartitions) []part {
	var out []part
	for _, t := range topics {
		for _, n := range t.Partitions {
			out = append(out, part{t.Topic, n})
		}
	}
	slices.SortFunc(out, compareParts)
	return slices.Compact(out)
}

// nowOf reads where a member has got to.
func nowOf(v *schema.ConsumerCurrent) *consumerNow {
	return &consumerNow{
		epoch: v.Epoch, previous: v.Previous, state: memberState(v.State),
		assigned: heldOf(v.Assigned, v.Epoch), pending: heldOf(v.Pending, v.Epoch),
	}
}

// heldOf reads partitions that a member has. Where it is not told since which epoch,
// it is the member's.
func heldOf(topics []schema.OwnedPartitions, epoch int32) []heldPart {
	var out []heldPart
	for _, t := range topics {
		for i, n := range t.Partitions {
			p := heldPart{part{t.Topic, n}, max(epoch, 0)}
			if len(t.Epochs) == len(t.Partitions) {
				p.since = t.Epochs[i]
			}
			out = append(out, p)
		}
	}
	slices.SortStableFunc(out, func(a, b heldPart) int { return compareParts(a.part, b.part) })
	return slices.CompactFunc(out, func(a, b heldPart) bool { return a.part == b.part })
}

// targetRecord is the record of a member's target.
func targetRecord(group, member string, target []part) *schema.ConsumerTargetRecord {
	v := &schema.ConsumerTarget{}
	for i, p := range target {
		if i == 0 || p.topic != target[i-1].topic {
			v.Assigned = append(v.Assigned, schema.TopicPartitions{Topic: p.topic})
		}
		t := &v.Assigned[len(v.Assigned)-1]
		t.Partitions = append(t.Partitions, p.n)
	}
	return &schema.ConsumerTargetRecord{Group: group, Member: member, Value: v}
}

// currentRecord is the record of where a member has got to.
func currentRecord(group, member string, now *consumerNow) *schema.ConsumerCurrentRecord {
	return &schema.ConsumerCurrentRecord{Group: group, Member: member, Value: &schema.ConsumerCurrent{
		Epoch: now.epoch, Previous: now.previous, State: int8(now.state), Assigned: ownedOf(now.assigned), Pending: ownedOf(now.pending),
	}}
}

func ownedOf(list []heldPart) []schema.OwnedPartitions {
	var out []schema.OwnedPartitions
	for i, p := range list {
		if i == 0 || p.topic != list[i-1].topic {
			out = append(out, schema.OwnedPartitions{Topic: p.topic})
		}
		t := &out[len(out)-1]
		t.Partitions, t.Epochs = append(t.Partitions, p.n), append(t.Epochs, p.since)
	}
	return out
}
