package group

import (
	"slices"
)

// partsOf reads the partitions of a target.
func partsOf(topics []TopicPartitions) []part {
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
func nowOf(v *ConsumerCurrent) *consumerNow {
	return &consumerNow{
		epoch: v.Epoch, previous: v.Previous, state: memberState(v.State),
		assigned: heldOf(v.Assigned, v.Epoch), pending: heldOf(v.Pending, v.Epoch),
	}
}

// heldOf reads partitions that a member has. Where it is not told since which epoch,
// it is the member's.
func heldOf(topics []OwnedPartitions, epoch int32) []heldPart {
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
func targetRecord(group, member string, target []part) *ConsumerTargetRecord {
	v := &ConsumerTarget{}
	for i, p := range target {
		if i == 0 || p.topic != target[i-1].topic {
			v.Assigned = append(v.Assigned, TopicPartitions{Topic: p.topic})
		}
		t := &v.Assigned[len(v.Assigned)-1]
		t.Partitions = append(t.Partitions, p.n)
	}
	return &ConsumerTargetRecord{group, member, v}
}

// currentRecord is the record of where a member has got to.
func currentRecord(group, member string, now *consumerNow) *ConsumerCurrentRecord {
	return &ConsumerCurrentRecord{group, member, &ConsumerCurrent{
		Epoch: now.epoch, Previous: now.previous, State: int8(now.state), Assigned: ownedOf(now.assigned), Pending: ownedOf(now.pending),
	}}
}

func ownedOf(list []heldPart) []OwnedPartitions {
	var out []OwnedPartitions
	for i, p := range list {
		if i == 0 || p.topic != list[i-1].topic {
			out = append(out, OwnedPartitions{Topic: p.topic})
		}
		t := &out[len(out)-1]
		t.Partitions, t.Epochs = append(t.Partitions, p.n), append(t.Epochs, p.since)
	}
	return out
}
