package group

import "muster/internal/group/schema"

// nowOf reads where a member has got to.
func nowOf(v *schema.ConsumerCurrent) *consumerNow {
	return &consumerNow{
		epoch: v.Epoch, previous: v.Previous, state: memberState(v.State),
		assigned: heldOf(v.Assigned, v.Epoch), pending: heldOf(v.Pending, v.Epoch),
	}
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
