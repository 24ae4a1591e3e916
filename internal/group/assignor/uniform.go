package assignor

import "slices"

// Uniform gives members as equal a number of partitions as their subscriptions
// allow, and moves no partition that need not move for that.
//
// Kafka calls a group homogeneous if each topic is named by all members, or all
// have one regex and nobody names a topic. Here it is homogeneous if all members
// subscribe to the same existing topics, however they came to. That is all that
// Kafka calls so, and more: one member may name what another has by regex, or a
// topic that does not exist. Such groups are as even in Kafka, but may see more
// moves. It also cannot be said wrongly: to treat members alike that differ would
// give them partitions of topics that they do not subscribe to.
func Uniform(in *Input) [][]Partitions {
	o := newOwners(in)
	o.keep()
	if homogeneous(in.Members) {
		o.level()
	} else {
		newBalancer(o).run()
	}
	return o.result()
}

// homogeneous tells whether all members subscribe to the same topics.
func homogeneous(members []Member) bool {
	for i := 1; i < len(members); i++ {
		if !sameTopics(members[0].Topics, members[i].Topics) {
			return false
		}
	}
	return true
}

// sameTopics compares lists of topics. One list that two members share is not
// looked at, which matters if a regex has thousands of topics and members.
func sameTopics(a, b []int32) bool {
	if len(a) != len(b) {
		return false
	}
	return len(a) == 0 || &a[0] == &b[0] || slices.Equal(a, b)
}

// level brings every member of a homogeneous group to its quota, after each has
// kept what it had. What cannot be divided is an extra partition for some. It goes
// to members that have it already, because nothing moves then (KAFKA-18688);
// others pass it on, until there are no more members left than extras.
func (o *owners) level() {
	if len(o.in.Members) == 0 {
		return
	}
	partitions := 0
	for _, t := range o.in.Members[0].Topics {
		partitions += len(o.of(t))
	}
	quota, extras := partitions/len(o.load), partitions%len(o.load)
	room := make([]int, len(o.load))
	for m := range o.load {
		most := quota
		if left := len(o.load) - m; extras > 0 && (o.load[m] > quota || left <= extras) {
			most++
			extras--
		}
		o.release(m, most)
		room[m] = most - o.load[m]
	}
	o.fill(room)
}

// fill gives what nobody owns to the members with room, in order. Room is for all
// of it: the quotas add up to the number of partitions.
func (o *owners) fill(room []int) {
	m := 0
	for _, t := range o.in.Members[0].Topics {
		owner := o.of(t)
		for p := range owner {
			if owner[p] != nobody {
				continue
			}
			for room[m] == 0 {
				m++
			}
			owner[p] = int32(m)
			room[m]--
		}
	}
}
