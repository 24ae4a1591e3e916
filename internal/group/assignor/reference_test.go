package assignor

import (
	"bytes"
	"cmp"
	"slices"
)

// reference is the uniform assignor for members that differ, word for word as the
// rule has it and as slow as that is: drop what is no longer subscribed to; give
// what no one has topic by topic to the least loaded subscriber; then at most
// sixteen rounds over the topics with two subscribers or more, in which the highest
// partition of the most loaded moves to the least loaded while they differ by more
// than one.
type reference struct {
	in    *Input
	owner map[place]int
	load  []int
}

func byReference(in *Input) (result [][]Partitions, rounds int) {
	r := &reference{in: in, owner: make(map[place]int), load: make([]int, len(in.Members))}
	for m, member := range in.Members {
		for _, part := range member.Previous {
			for _, p := range part.List {
				at := place{part.Topic, p}
				_, taken := r.owner[at]
				if slices.Contains(member.Topics, part.Topic) && p < in.Topics[part.Topic].Partitions && !taken {
					r.owner[at] = m
					r.load[m]++
				}
			}
		}
	}
	topics := r.order()
	for _, t := range topics {
		for p := range in.Topics[t].Partitions {
			if _, taken := r.owner[place{t, p}]; !taken {
				r.give(place{t, p}, r.least(t))
			}
		}
	}
	for moves := -1; moves != 0 && rounds < 16; rounds++ {
		moves = 0
		for _, t := range topics {
			for len(r.subscribers(t)) >= 2 && r.move(t) {
				moves++
			}
		}
	}
	return r.result(), rounds
}

func (r *reference) give(at place, m int) {
	if old, taken := r.owner[at]; taken {
		r.load[old]--
	}
	r.owner[at] = m
	r.load[m]++
}

func (r *reference) subscribers(t int32) []int {
	var members []int
	for m, member := range r.in.Members {
		if slices.Contains(member.Topics, t) {
			members = append(members, m)
		}
	}
	return members
}

func (r *reference) least(t int32) int {
	return slices.MinFunc(r.subscribers(t), func(a, b int) int { return cmp.Or(r.load[a]-r.load[b], a-b) })
}

// move moves one partition of a topic, if that is called for.
func (r *reference) move(t int32) bool {
	most, at := -1, place{}
	for p := range r.in.Topics[t].Partitions {
		m := r.owner[place{t, p}]
		if most < 0 || r.load[m] > r.load[most] || r.load[m] == r.load[most] && m >= most {
			most, at = m, place{t, p}
		}
	}
	least := r.least(t)
	if most < 0 || r.load[most]-r.load[least] <= 1 {
		return false
	}
	r.give(at, least)
	return true
}

func (r *reference) order() []int32 {
	var topics []int32
	for t := range int32(len(r.in.Topics)) {
		if len(r.subscribers(t)) > 0 {
			topics = append(topics, t)
		}
	}
	slices.SortFunc(topics, func(a, b int32) int {
		x, y := r.in.Topics[a], r.in.Topics[b]
		n, m := len(r.subscribers(a)), len(r.subscribers(b))
		return cmp.Or(
			-cmp.Compare(float64(x.Partitions)/float64(n), float64(y.Partitions)/float64(m)),
			n-m,
			bytes.Compare(x.ID[:], y.ID[:]))
	})
	return topics
}

func (r *reference) result() [][]Partitions { return ofOwners(r.in, r.owner) }

// ofOwners makes a result of who owns what.
func ofOwners(in *Input, owner map[place]int) [][]Partitions {
	result := make([][]Partitions, len(in.Members))
	for t, topic := range in.Topics {
		for p := range topic.Partitions {
			m, given := owner[place{int32(t), p}]
			if !given {
				continue
			}
			if n := len(result[m]); n == 0 || result[m][n-1].Topic != int32(t) {
				result[m] = append(result[m], Partitions{Topic: int32(t)})
			}
			last := &result[m][len(result[m])-1]
			last.List = append(last.List, p)
		}
	}
	return result
}

// rangeByReference is the range assignor in the same way: of each topic a list of
// its subscribers, static members first, who take what is left in turn.
func rangeByReference(in *Input) [][]Partitions {
	subscribers := make([][]int, len(in.Topics))
	for m, member := range in.Members {
		for _, t := range member.Topics {
			subscribers[t] = append(subscribers[t], m)
		}
	}
	owner := make(map[place]int)
	for t, members := range subscribers {
		slices.SortFunc(members, func(a, b int) int {
			x, y := in.Members[a], in.Members[b]
			switch {
			case x.Instance != "" && y.Instance == "":
				return -1
			case x.Instance == "" && y.Instance != "":
				return 1
			}
			return cmp.Or(cmp.Compare(x.Instance, y.Instance), cmp.Compare(a, b))
		})
		p := int32(0)
		for i, m := range members {
			n := int(in.Topics[t].Partitions) / len(members)
			if i < int(in.Topics[t].Partitions)%len(members) {
				n++
			}
			for range n {
				owner[place{int32(t), p}] = m
				p++
			}
		}
	}
	return ofOwners(in, owner)
}
