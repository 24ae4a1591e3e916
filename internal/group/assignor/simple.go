package assignor

import "slices"

// Simple is the assignor of share groups (KIP-932), whose members share partitions if there are
// more of them than partitions. Each partition goes to a member, as by Uniform; who is left
// with none is given one beside others: the one that it had, unless too many have that, or
// else the one that the fewest have. So among members with the same topics there are as many
// to each partition, but for one, and as many partitions to each member.
//
// Kafka says how many members to a partition and partitions to a member there shall be, and
// leaves the rest to the order of hash maps.
func Simple(in *Input) [][]Partitions {
	o := newOwners(in)
	o.keep()
	s := newSubscriptions(in, inOrder(len(in.Members)))
	if len(s.classes) > 1 {
		newBalancer(o, s).run()
	} else if len(s.classes) == 1 {
		o.level(s.classes[0].topics)
	}
	target := o.result()
	h := newSharers(o)
	for i := range s.classes {
		h.share(&s.classes[i], target)
	}
	return target
}

// sharers counts the members of each partition, and gives some to members without any.
type sharers struct {
	*owners
	heap         // the partitions of a class, the one that the fewest members have in front
	count  []int // by partition
	extras int   // how many partitions may have one member more than the others
	most   int   // how many members the others may have
	work   int   // counts comparisons
}

func newSharers(o *owners) *sharers {
	h := &sharers{owners: o, count: make([]int, len(o.owner))}
	for p, m := range o.owner {
		if m != nobody {
			h.count[p] = 1
		}
	}
	h.heap = heap{at: slices.Repeat([]int32{absent}, len(o.owner)), work: &h.work, before: func(a, b int32) bool {
		return h.count[a] < h.count[b] || h.count[a] == h.count[b] && a < b
	}}
	return h
}

// share gives a partition to each member of a class that has none, if the class has any.
func (h *sharers) share(c *class, target [][]Partitions) {
	var all, left []int32
	for _, t := range c.topics {
		for p := h.owners.first[t]; p < h.owners.first[t+1]; p++ {
			all = append(all, int32(p))
		}
	}
	if len(all) == 0 {
		return
	}
	h.most = max(1, len(c.members)/len(all))
	h.extras = max(len(c.members)-h.most*len(all), 0)
	if len(c.members) < len(all) {
		h.extras = len(c.members) // They share with members of other classes.
	}
	for _, m := range c.members {
		if len(target[m]) > 0 {
			continue
		}
		if p := h.had(m); p != absent {
			target[m] = h.give(p)
		} else {
			left = append(left, m)
		}
	}
	h.reset(all)
	for _, m := range left {
		p := h.heap.first()
		target[m] = h.give(p)
		h.fix(p)
	}
}

// had is a partition that a member had and may keep, absent if there is none.
func (h *sharers) had(m int32) int32 {
	member := &h.in.Members[m]
	for _, had := range member.Previous {
		if _, subscribed := slices.BinarySearch(member.Topics, had.Topic); !subscribed {
			continue
		}
		for _, p := range had.List {
			if p < 0 || p >= h.in.Topics[had.Topic].Partitions {
				continue
			}
			at := h.owners.first[had.Topic] + int(p)
			if h.count[at] < h.most {
				return int32(at)
			}
			if h.count[at] == h.most && h.extras > 0 {
				h.extras--
				return int32(at)
			}
		}
	}
	return absent
}

// give is a partition for one more member.
func (h *sharers) give(at int32) []Partitions {
	h.count[at]++
	t, _ := slices.BinarySearch(h.owners.first, int(at)+1)
	return []Partitions{{Topic: int32(t - 1), List: []int32{at - int32(h.owners.first[t-1])}}}
}
