package txn

import (
	"slices"
	"sort"
	"strings"
)

// topic is partitions of a topic. Lists of them are in order of their names, each
// once, and so are the partitions. They never change, since records share them.
type topic struct {
	name       string
	partitions []int32
}

// contains says whether a partition is in a list.
func contains(list []topic, name string, partition int32) bool {
	i, ok := slices.BinarySearchFunc(list, name, func(t topic, name string) int { return strings.Compare(t.name, name) })
	if !ok {
		return false
	}
	_, ok = slices.BinarySearch(list[i].partitions, partition)
	return ok
}

// containsAll says whether all partitions are in a list.
func containsAll(list, asked []topic) bool {
	for _, t := range asked {
		for _, p := range t.partitions {
			if !contains(list, t.name, p) {
				return false
			}
		}
	}
	return true
}

// union returns the partitions of a list and those asked for, which may be in any
// order and named again.
func union(list, asked []topic) []topic {
	all := slices.Concat(list, asked)
	sort.SliceStable(all, func(i, j int) bool { return all[i].name < all[j].name })
	out := all[:0]
	for i := 0; i < len(all); {
		first := i
		for i++; i < len(all) && all[i].name == all[first].name; i++ {
		}
		if t := (topic{all[first].name, joined(all[first:i])}); len(t.partitions) > 0 {
			out = append(out, t)
		}
	}
	if len(out) == 0 {
		return nil
	}
	return slices.Clip(out)
}

// joined returns the partitions of several entries of one topic, in order.
func joined(entries []topic) []int32 {
	if len(entries) == 1 && isStrictlySorted(entries[0].partitions) {
		return entries[0].partitions
	}
	var all []int32
	for _, e := range entries {
		all = append(all, e.partitions...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func isStrictlySorted(list []int32) bool {
	for i := 1; i < len(list); i++ {
		if list[i] <= list[i-1] {
			return false
		}
	}
	return true
}
