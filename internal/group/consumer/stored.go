package consumer

import (
	"muster/internal/group/modern"
	"muster/internal/group/schema"
)

// nowOf reads where a member has got to.
func nowOf(v *schema.ConsumerCurrent) *modern.Current {
	return &modern.Current{
		Epoch: v.Epoch, Previous: v.Previous, State: modern.MemberState(v.State),
		Assigned: modern.HeldOf(v.Assigned, v.Epoch), Pending: modern.HeldOf(v.Pending, v.Epoch),
	}
}

// TargetRecord is the record of a member's target.
func TargetRecord(group, member string, target []modern.Partition) *schema.ConsumerTargetRecord {
	v := &schema.ConsumerTarget{}
	for i, p := range target {
		if i == 0 || p.Topic != target[i-1].Topic {
			v.Assigned = append(v.Assigned, schema.TopicPartitions{Topic: p.Topic})
		}
		t := &v.Assigned[len(v.Assigned)-1]
		t.Partitions = append(t.Partitions, p.Number)
	}
	return &schema.ConsumerTargetRecord{Group: group, Member: member, Value: v}
}

// CurrentRecord is the record of where a member has got to.
func CurrentRecord(group, member string, now *modern.Current) *schema.ConsumerCurrentRecord {
	return &schema.ConsumerCurrentRecord{Group: group, Member: member, Value: &schema.ConsumerCurrent{
		Epoch: now.Epoch, Previous: now.Previous, State: int8(now.State), Assigned: modern.OwnedOf(now.Assigned), Pending: modern.OwnedOf(now.Pending),
	}}
}
