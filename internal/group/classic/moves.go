package classic

import (
	"cmp"
	"maps"
	"slices"
	"sort"

	"muster/internal/group/kind"
	"muster/internal/group/schema"
	"muster/internal/group/subscription"
	"muster/internal/journal"
)

// moves compares who owned which partition with who owns it now.
func moves(before *schema.Group, g *Group) (list []journal.Move, count, partitions int) {
	old := map[subscription.TopicPartition]string{}
	if before != nil {
		for i := range before.Members {
			id := g.nowKnownAs(&before.Members[i])
			subscription.EachAssigned(before.Members[i].Assignment, func(tp subscription.TopicPartition) { old[tp] = id })
		}
	}
	for m := g.Members.First; m != nil; m = m.Next {
		subscription.EachAssigned(m.Assigned, func(tp subscription.TopicPartition) {
			partitions++
			if from := old[tp]; from != m.ID {
				list = append(list, journal.Move{Topic: tp.Topic, Partition: tp.Partition, From: from, To: m.ID})
			}
			delete(old, tp)
		})
	}
	for _, tp := range sortedPartitions(old) {
		list = append(list, journal.Move{Topic: tp.Topic, Partition: tp.Partition, From: old[tp]})
	}
	sort.SliceStable(list, func(i, j int) bool {
		a, b := &list[i], &list[j]
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition)) < 0
	})
	return list[:min(len(list), kind.MaxMoves)], len(list), partitions
}

// nowKnownAs returns the id of a former member: a static one that restarted in
// between has another, and its partitions have not moved.
func (g *Group) nowKnownAs(e *schema.GroupMember) string {
	if e.InstanceID != nil {
		if m := g.Members.static(*e.InstanceID); m != nil {
			return m.ID
		}
	}
	return e.MemberID
}

func sortedPartitions(m map[subscription.TopicPartition]string) []subscription.TopicPartition {
	return slices.SortedFunc(maps.Keys(m), func(a, b subscription.TopicPartition) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	})
}
