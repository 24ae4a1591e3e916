package assignor

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// size bounds a generated group.
type size struct{ members, topics, partitions int }

var (
	tiny  = size{6, 5, 12}
	small = size{40, 12, 150}
	large = size{2000, 400, 10000}
)

// The kinds of subscriptions that a generated group may have.
const (
	sameTopic = iota // all members subscribe to the same topics
	twoKinds         // half of them to some more, as while that is being changed
	overlaps         // neighbours have topics in common
	anything         // each to topics of its own choice
	kinds
)

// generate makes a group without previous targets. A seed is a group, and the first
// is as large as it may be.
func generate(seed uint64, s size, kind int) (*Input, *rand.Rand) {
	r := rand.New(rand.NewPCG(seed, uint64(kind)))
	in := &Input{Topics: make([]Topic, s.topics), Members: make([]Member, s.members)}
	if seed > 0 {
		in = &Input{Topics: make([]Topic, 1+r.IntN(s.topics)), Members: make([]Member, 1+r.IntN(s.members))}
	}
	left := s.partitions
	for t := range in.Topics {
		n := r.IntN(1 + min(left, 2*s.partitions/len(in.Topics)))
		left -= n
		in.Topics[t] = Topic{Name: fmt.Sprintf("%04d", t), Partitions: int32(n)}
		for i := range in.Topics[t].ID {
			in.Topics[t].ID[i] = byte(r.Uint32())
		}
	}
	more := choose(r, len(in.Topics), 0.9)
	base := more[:r.IntN(len(more)+1)] // Two lists may begin at one address.
	for m := range in.Members {
		in.Members[m] = Member{ID: fmt.Sprintf("m%04d", 2*m)}
		if r.IntN(4) == 0 {
			in.Members[m].Instance = fmt.Sprintf("i%04d", r.IntN(1000)*10000+m)
		}
		switch kind {
		case sameTopic:
			in.Members[m].Topics = base
		case twoKinds:
			in.Members[m].Topics = base
			if r.IntN(2) == 0 {
				in.Members[m].Topics = more
			}
		case overlaps:
			from := m * len(in.Topics) / len(in.Members)
			for t := from; t < min(from+3, len(in.Topics)); t++ {
				in.Members[m].Topics = append(in.Members[m].Topics, int32(t))
			}
		case anything:
			in.Members[m].Topics = choose(r, len(in.Topics), r.Float64()*r.Float64())
		}
	}
	return in, r
}

// choose returns some of n, each with the same likelihood.
func choose(r *rand.Rand, n int, likely float64) []int32 {
	var some []int32
	for i := range n {
		if r.Float64() < likely {
			some = append(some, int32(i))
		}
	}
	return some
}

// follow makes a result the previous target.
func follow(in *Input, result [][]Partitions) {
	for m := range in.Members {
		in.Members[m].Previous = result[m]
	}
}

// scramble gives the members previous targets that make little sense: any
// partitions, of which some do not exist or belong to several.
func scramble(in *Input, r *rand.Rand) {
	for m := range in.Members {
		in.Members[m].Previous = nil
		for t := range in.Topics {
			if r.IntN(1+len(in.Members)/2) > 0 {
				continue
			}
			list := choose(r, int(in.Topics[t].Partitions)+2, r.Float64())
			in.Members[m].Previous = append(in.Members[m].Previous, Partitions{Topic: int32(t), List: list})
		}
	}
}

// leave removes a member, and join adds one, with the topics of another, or none.
func leave(in *Input, r *rand.Rand) {
	m := r.IntN(len(in.Members))
	in.Members = slices.Delete(in.Members, m, m+1)
}

func join(in *Input, r *rand.Rand) (joined int) {
	joined = r.IntN(len(in.Members) + 1)
	m := Member{ID: fmt.Sprintf("m%04d", 2*joined-1), Topics: in.Members[r.IntN(len(in.Members))].Topics}
	in.Members = slices.Insert(in.Members, joined, m)
	return joined
}

// clone copies all of an input, so that no memory is shared.
func clone(in *Input) *Input {
	c := &Input{Topics: slices.Clone(in.Topics), Members: slices.Clone(in.Members)}
	for m := range c.Members {
		c.Members[m].Topics = slices.Clone(c.Members[m].Topics)
		c.Members[m].Previous = slices.Clone(c.Members[m].Previous)
		for i := range c.Members[m].Previous {
			c.Members[m].Previous[i].List = slices.Clone(c.Members[m].Previous[i].List)
		}
	}
	return c
}
