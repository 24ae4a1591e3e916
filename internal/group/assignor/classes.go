package assignor

import "slices"

// class is a set of members that subscribe to the same topics. Most groups whose
// members differ have few classes: two, while the subscription is being changed.
type class struct {
	topics  []int32
	members []int32
	next    int32 // another class whose topics have the same sum, or -1
}

// subscriptions says who subscribes to which topic, class by class: to say it
// member by member would take a list of members times topics.
type subscriptions struct {
	classes     []class
	class       []int32   // by member
	subscribers []int     // by topic: how many members subscribe to it
	choices     [][]int32 // by topic: the classes that subscribe to it, ascending
}

// newSubscriptions sorts members into classes. A class has its members in the
// order given.
func newSubscriptions(in *Input, order []int32) *subscriptions {
	s := &subscriptions{subscribers: make([]int, len(in.Topics))}
	s.classify(in.Members)
	sizes := make([]int, len(s.classes))
	for _, c := range s.class {
		sizes[c]++
	}
	rows := split(sizes)
	for _, m := range order {
		c := s.class[m]
		rows[c] = append(rows[c], m)
	}
	subscribed := make([]int, len(in.Topics)) // by how many classes
	for i := range s.classes {
		s.classes[i].members = rows[i]
		for _, t := range s.classes[i].topics {
			subscribed[t]++
			s.subscribers[t] += len(rows[i])
		}
	}
	s.choices = split(subscribed)
	for i := range s.classes {
		for _, t := range s.classes[i].topics {
			s.choices[t] = append(s.choices[t], int32(i))
		}
	}
	return s
}

// split returns empty lists with room for so many numbers each, in one piece of
// memory.
func split(sizes []int) [][]int32 {
	total := 0
	for _, n := range sizes {
		total += n
	}
	rows, left := make([][]int32, len(sizes)), make([]int32, total)
	for i, n := range sizes {
		rows[i], left = left[:0:n], left[n:]
	}
	return rows
}

// classify finds the class of each member. Lists that members share are known by
// their address, and read once. Others are found by a sum, and then compared.
func (s *subscriptions) classify(members []Member) {
	type shared struct {
		first *int32
		count int
	}
	known, sums := make(map[shared]int32), make(map[uint64]int32)
	s.class = make([]int32, len(members))
	for m := range members {
		topics := members[m].Topics
		var key shared
		if len(topics) > 0 {
			key = shared{&topics[0], len(topics)}
		}
		c, ok := known[key]
		if !ok {
			c = s.find(topics, sums)
			known[key] = c
		}
		s.class[m] = c
	}
}

// find returns the class with these topics, and makes it if there is none.
func (s *subscriptions) find(topics []int32, sums map[uint64]int32) int32 {
	n := sum(topics)
	head, ok := sums[n]
	if !ok {
		head = -1
	}
	for c := head; c >= 0; c = s.classes[c].next {
		if slices.Equal(s.classes[c].topics, topics) {
			return c
		}
	}
	s.classes = append(s.classes, class{topics: topics, next: head})
	sums[n] = int32(len(s.classes) - 1)
	return sums[n]
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
