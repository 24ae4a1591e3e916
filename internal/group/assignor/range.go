package assignor

import (
	"cmp"
	"slices"
)

// Range gives each subscriber of a topic one block of its partitions. The blocks
// of the first subscribers are longer by one where the partitions cannot be
// divided. Members have the same place in every topic that they subscribe to, so
// that those who subscribe to topics of one size have the same partitions of each:
// their records can be joined. Previous counts for nothing.
func Range(in *Input) [][]Partitions {
	o := newOwners(in)
	subscribers := make([]int, len(in.Topics))
	for m := range in.Members {
		for _, t := range in.Members[m].Topics {
			subscribers[t]++
		}
	}
	before := make([]int, len(in.Topics)) // how many subscribers have had their block
	for _, m := range rangeOrder(in.Members) {
		for _, t := range in.Members[m].Topics {
			partitions := o.of(t)
			from, next := block(len(partitions), subscribers[t], before[t])
			before[t]++
			for p := from; p < next; p++ {
				partitions[p] = m
			}
		}
	}
	return o.result()
}

// block returns the partitions of the i-th of n subscribers.
func block(partitions, n, i int) (from, next int) {
	size, longer := partitions/n, partitions%n
	from = i*size + min(i, longer)
	next = from + size
	if i < longer {
		next++
	}
	return from, next
}

// rangeOrder returns the members in the order of their blocks: static members by
// instance id, which stays when the process is started again, and then the others
// by member id.
func rangeOrder(members []Member) []int32 {
	order := make([]int32, len(members))
	for m := range order {
		order[m] = int32(m)
	}
	slices.SortStableFunc(order, func(a, b int32) int {
		x, y := members[a].Instance, members[b].Instance
		if (x == "") != (y == "") {
			return cmp.Compare(y, x)
		}
		return cmp.Compare(x, y)
	})
	return order
}
