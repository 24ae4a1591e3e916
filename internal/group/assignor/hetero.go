package assignor

import (
	"bytes"
	"cmp"
	"slices"
)

// maxRounds is how often the topics are gone through to move partitions. Where
// subscriptions overlap without being the same, a partition may have to move from
// one member to the next and on, one step in each round. Kafka gives up here too.
const maxRounds = 16

// balancer assigns the partitions of a group whose members subscribe to different
// topics. It goes topic by topic. At each it has the subscribers' classes in a heap
// and the members of each class in another, so that the subscriber with the
// smallest load is at hand, and to find it costs little however many there are.
type balancer struct {
	*owners
	*subscriptions
	ranks []heap // by class: its members, the least loaded first

	// About the topic at hand.
	takers  heap    // its classes, the one of the least loaded member first
	givers  heap    // the owners of its partitions, the most loaded first
	names   []int32 // what givers was made of
	highest []int32 // by member: the highest partition that it owned and may give, or no one
	lower   []int32 // by partition: the next lower one of the same owner, or no one

	work int // how many comparisons and partitions it took
}

func newBalancer(o *owners, s *subscriptions) *balancer {
	members := len(o.in.Members)
	b := &balancer{owners: o, subscriptions: s}
	b.highest = slices.Repeat([]int32{nobody}, members)
	at := slices.Repeat([]int32{absent}, members)
	b.ranks = make([]heap, len(b.classes)) // They take over the lists of the classes.
	for c := range b.ranks {
		b.ranks[c] = heap{items: b.classes[c].members, at: at, work: &b.work, before: b.lessLoaded}
		b.ranks[c].reset(b.classes[c].members)
	}
	b.takers = heap{at: slices.Repeat([]int32{absent}, len(b.classes)), work: &b.work, before: func(x, y int32) bool {
		return b.lessLoaded(b.ranks[x].first(), b.ranks[y].first())
	}}
	b.givers = heap{at: slices.Repeat([]int32{absent}, members), work: &b.work, before: func(x, y int32) bool { return b.lessLoaded(y, x) }}
	return b
}

// lessLoaded is the order of members: by load, and then by id.
func (b *balancer) lessLoaded(x, y int32) bool {
	if b.load[x] != b.load[y] {
		return b.load[x] < b.load[y]
	}
	return x < y
}

// run gives the partitions that no one owns, and then moves others until the loads
// are as equal as can be, or that has taken too long. It returns the rounds.
func (b *balancer) run() (rounds int) {
	topics := b.order()
	for _, t := range topics {
		b.deal(t)
	}
	for rounds < maxRounds {
		rounds++
		moved := false
		for _, t := range topics {
			if b.subscribers[t] >= 2 && b.balance(t) {
				moved = true
			}
		}
		if !moved {
			break
		}
	}
	return rounds
}

// order returns the topics that have subscribers, in the order in which they are
// gone through: first those with the most partitions for each subscriber, and then
// those with the fewest subscribers. What comes later has more choice, and evens out
// what came before.
func (b *balancer) order() []int32 {
	var topics []int32
	for t := range b.in.Topics {
		if b.subscribers[t] > 0 {
			topics = append(topics, int32(t))
		}
	}
	slices.SortFunc(topics, func(x, y int32) int {
		return cmp.Or(
			cmp.Compare(len(b.of(y))*b.subscribers[x], len(b.of(x))*b.subscribers[y]),
			cmp.Compare(b.subscribers[x], b.subscribers[y]),
			bytes.Compare(b.in.Topics[x].ID[:], b.in.Topics[y].ID[:]),
		)
	})
	return topics
}

// deal gives each partition of a topic that no one owns to the least loaded
// subscriber.
func (b *balancer) deal(topic int32) {
	owner := b.of(topic)
	b.work += len(owner)
	from := slices.Index(owner, nobody)
	if from < 0 {
		return
	}
	b.gather(topic)
	for p := from; p < len(owner); p++ {
		if owner[p] == nobody {
			owner[p] = b.taker()
			b.add(owner[p], 1)
		}
	}
}

// balance moves partitions of a topic, the highest first, from the most loaded
// owner to the least loaded subscriber, while their loads differ by more than one.
// It tells whether any moved. No partition moves twice: a member that was given
// one has at most one more than the least, and that never falls.
func (b *balancer) balance(topic int32) (moved bool) {
	owner := b.of(topic)
	b.work += len(owner)
	most := 0
	for _, m := range owner {
		most = max(most, b.load[m])
	}
	b.gather(topic)
	if most-b.load[b.taker()] <= 1 {
		return false
	}
	b.gatherOwners(owner)
	for len(b.givers.items) > 0 {
		from, to := b.givers.first(), b.taker()
		p := b.highest[from]
		if p == nobody {
			b.givers.drop()
			continue
		}
		if b.load[from]-b.load[to] <= 1 {
			break
		}
		b.highest[from] = b.lower[p]
		owner[p] = to
		b.add(from, -1)
		b.add(to, 1)
		moved = true
	}
	return moved
}

// taker returns the least loaded subscriber of the topic at hand.
func (b *balancer) taker() int32 { return b.ranks[b.takers.first()].first() }

// add changes what a subscriber of the topic at hand has.
func (b *balancer) add(m int32, n int) {
	b.load[m] += n
	b.ranks[b.class[m]].fix(m)
	b.takers.fix(b.class[m])
	b.givers.fix(m)
}

// gather prepares the subscribers of a topic.
func (b *balancer) gather(topic int32) {
	b.work += len(b.choices[topic])
	b.takers.reset(b.choices[topic])
}

// gatherOwners prepares the owners of a topic's partitions, and what each owns.
func (b *balancer) gatherOwners(owner []int32) {
	for _, m := range b.names {
		b.highest[m] = nobody
	}
	b.names = b.names[:0]
	b.lower = slices.Grow(b.lower[:0], len(owner))[:len(owner)]
	for p, m := range owner {
		if b.highest[m] == nobody {
			b.names = append(b.names, m)
		}
		b.lower[p], b.highest[m] = b.highest[m], int32(p)
	}
	b.givers.reset(b.names)
}
