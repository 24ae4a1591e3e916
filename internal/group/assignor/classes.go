package assignor

import (
	"cmp"
	"slices"
)

// class is a set of members that subscribe to the same topics. Most groups whose
// members differ have few classes: two, while the subscription is being changed.
type class struct {
	topics  []int32
	members heap // the one with the least partitions first
}

// newClasses sorts members into classes, and returns the class of each member. The
// members of a class are ascending, until their order is that of their load.
func newClasses(members []Member) (classes []class, of []int32) {
	order, sums := make([]int32, len(members)), make([]uint64, len(members))
	for m := range members {
		order[m] = int32(m)
		if m > 0 && sameTopics(members[m-1].Topics, members[m].Topics) {
			sums[m] = sums[m-1]
			continue
		}
		sums[m] = sum(members[m].Topics)
	}
	// The sums only spare comparisons: lists with the same sum are compared.
	slices.SortFunc(order, func(a, b int32) int {
		x, y := members[a].Topics, members[b].Topics
		if c := cmp.Or(cmp.Compare(sums[a], sums[b]), cmp.Compare(len(x), len(y))); c != 0 {
			return c
		}
		if !sameTopics(x, y) {
			return slices.Compare(x, y)
		}
		return cmp.Compare(a, b)
	})
	of = make([]int32, len(members))
	for from := 0; from < len(order); {
		next, topics := from, members[order[from]].Topics
		for next < len(order) && sameTopics(topics, members[order[next]].Topics) {
			of[order[next]] = int32(len(classes))
			next++
		}
		classes = append(classes, class{topics: topics, members: heap{items: order[from:next:next]}})
		from = next
	}
	return classes, of
}

// sum is a number that differs for most lists that differ (FNV-1a, in steps of a
// topic).
func sum(topics []int32) uint64 {
	n := uint64(14695981039346656037)
	for _, t := range topics {
		n = (n ^ uint64(uint32(t))) * 1099511628211
	}
	return n
}
