package assignor

// Uniform gives members as equal a number of partitions as their subscriptions
// allow, and moves few partitions for that: as few as can be in a homogeneous
// group, and none in any group that is balanced.
//
// Kafka calls a group homogeneous if each topic is named by all members, or all
// have one regex and no one names a topic. Here it is homogeneous if all members
// subscribe to the same existing topics, however they came to. That is all that
// Kafka calls so, and more: one member may name what another has by regex, or a
// topic that does not exist. Such groups are as even in Kafka, but may see more
// moves. It also cannot be said wrongly: to treat members alike that differ would
// give them partitions of topics that they do not subscribe to.
func Uniform(in *Input) [][]Partitions {
	o := newOwners(in)
	o.keep()
	if s := newSubscriptions(in, inOrder(len(in.Members))); len(s.classes) > 1 {
		newBalancer(o, s).run()
	} else if len(s.classes) == 1 {
		o.level(s.classes[0].topics)
	}
	return o.result()
}

// level brings every member of a homogeneous group to its quota, after each has
// kept what it had. What cannot be divided is an extra partition for some. It goes
// to members that have it already, because nothing moves then (KAFKA-18688);
// others pass it on, until there are no more members left than extras.
func (o *owners) level(topics []int32) {
	partitions := 0
	for _, t := range topics {
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
	o.fill(topics, room)
}

// fill gives what no one owns to the members with room, in order. Room is for all
// of it: the quotas add up to the number of partitions.
func (o *owners) fill(topics []int32, room []int) {
	m := 0
	for _, t := range topics {
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
