package assignor

import "slices"

// no one owns a partition that is yet to be given.
const nobody int32 = -1

// owners says which member owns which partition, and how many each has.
type owners struct {
	in    *Input
	first []int   // where each topic begins in owner
	owner []int32 // by topic and partition: the index of a member, or no one
	load  []int   // by member: how many partitions it owns
}

func newOwners(in *Input) *owners {
	o := &owners{in: in, first: make([]int, len(in.Topics)+1), load: make([]int, len(in.Members))}
	for t := range in.Topics {
		o.first[t+1] = o.first[t] + int(max(in.Topics[t].Partitions, 0))
	}
	o.owner = slices.Repeat([]int32{nobody}, o.first[len(in.Topics)])
	return o
}

// of returns the owners of the partitions of a topic.
func (o *owners) of(topic int32) []int32 {
	return o.owner[o.first[topic]:o.first[topic+1]]
}

// keep gives each member what it had and may still have. Two members may have
// had the same partition, because a log can lose one record of the two that moved
// it; the first keeps it.
func (o *owners) keep() {
	for m := range o.in.Members {
		member := &o.in.Members[m]
		for _, had := range member.Previous {
			if _, subscribed := slices.BinarySearch(member.Topics, had.Topic); !subscribed {
				continue
			}
			owner := o.of(had.Topic)
			for _, p := range had.List {
				if 0 <= p && int(p) < len(owner) && owner[p] == nobody {
					owner[p] = int32(m)
					o.load[m]++
				}
			}
		}
	}
}

// release takes partitions that a member kept until it has no more than most, the
// last of the last topic first.
func (o *owners) release(m, most int) {
	for _, had := range slices.Backward(o.in.Members[m].Previous) {
		if had.Topic < 0 || int(had.Topic) >= len(o.in.Topics) {
			continue
		}
		owner := o.of(had.Topic)
		for _, p := range slices.Backward(had.List) {
			if o.load[m] <= most {
				return
			}
			if 0 <= p && int(p) < len(owner) && owner[p] == int32(m) {
				owner[p] = nobody
				o.load[m]--
			}
		}
	}
}

// result returns what each member owns. The lists of one member are in one piece
// of memory of its own, so that whoever holds on to a member's target does not
// hold on to those of all.
func (o *owners) result() [][]Partitions {
	topics, seen := make([]int, len(o.load)), make([]int32, len(o.load))
	for m := range seen {
		o.load[m], seen[m] = 0, -1
	}
	o.each(func(t, _, m int32) {
		o.load[m]++
		if seen[m] != t {
			topics[m]++
			seen[m] = t
		}
	})
	all, lists := make([][]Partitions, len(o.load)), make([][]int32, len(o.load))
	for m, n := range topics {
		if n > 0 {
			all[m], lists[m] = make([]Partitions, 0, n), make([]int32, 0, o.load[m])
		}
	}
	o.each(func(t, p, m int32) {
		if n := len(all[m]); n == 0 || all[m][n-1].Topic != t {
			all[m] = append(all[m], Partitions{Topic: t})
		}
		from := len(lists[m])
		lists[m] = append(lists[m], p)
		last := &all[m][len(all[m])-1]
		from -= len(last.List)
		last.List = lists[m][from:len(lists[m]):len(lists[m])]
	})
	return all
}

// each calls f for every partition that has an owner, in order.
func (o *owners) each(f func(topic, partition, member int32)) {
	for t := range o.in.Topics {
		for p, m := range o.of(int32(t)) {
			if m != nobody {
				f(int32(t), int32(p), m)
			}
		}
	}
}
