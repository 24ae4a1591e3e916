package group

import (
	"cmp"
	"maps"
	"slices"

	"muster/internal/group/schema"
	"muster/internal/journal"
)

// moves compares who owned which partition with who owns it now.
func moves(before *schema.Group, g *classicGroup) (list []journal.Move, count, partitions int) {
	old := map[topicPartition]string{}
	if before != nil {
		for i := range before.Members {
			id := g.nowKnownAs(&before.Members[i])
			eachAssigned(before.Members[i].Assignment, func(tp topicPartition) { old[tp] = id })
		}
	}
	for m := g.members.first; m != nil; m = m.next {
		eachAssigned(m.assigned, func(tp topicPartition) {
			partitions++
			if from := old[tp]; from != m.id {
				list = append(list, journal.Move{Topic: tp.topic, Partition: tp.partition, From: from, To: m.id})
			}
			delete(old, tp)
		})
	}
	for _, tp := range sortedPartitions(old) {
		list = append(list, journal.Move{Topic: tp.topic, Partition: tp.partition, From: old[tp]})
	}
	slices.SortStableFunc(list, func(a, b journal.Move) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	})
	return list[:min(len(list), maxMoves)], len(list), partitions
}

// nowKnownAs returns the id of a former member: a static one that restarted in
// between has another, and its partitions have not moved.
func (g *classicGroup) nowKnownAs(e *schema.GroupMember) string {
	if e.InstanceID != nil {
		if m := g.members.static(*e.InstanceID); m != nil {
			return m.id
		}
	}
	return e.MemberID
}

func sortedPartitions(m map[topicPartition]string) []topicPartition {
	return slices.SortedFunc(maps.Keys(m), func(a, b topicPartition) int {
		return cmp.Or(cmp.Compare(a.topic, b.topic), cmp.Compare(a.partition, b.partition))
	})
}
