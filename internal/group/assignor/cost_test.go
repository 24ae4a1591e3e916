package assignor

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// sized makes a group of exactly these numbers. Topics have the same number of
// partitions; ids are in another order than names.
func sized(members, topics, partitions int, subscribe func(m int) []int32) *Input {
	in := &Input{Topics: make([]Topic, topics), Members: make([]Member, members)}
	for t := range in.Topics {
		in.Topics[t] = Topic{Name: fmt.Sprintf("t%06d", t), Partitions: int32(partitions / topics)}
		in.Topics[t].ID[0], in.Topics[t].ID[1] = byte(t*7), byte(t>>8)
	}
	for m := range in.Members {
		in.Members[m] = Member{ID: fmt.Sprintf("m%06d", m), Topics: subscribe(m)}
	}
	return in
}

// The ways to subscribe that the measurements use.

func all(topics int) func(int) []int32 {
	list := make([]int32, topics)
	for t := range list {
		list[t] = int32(t)
	}
	return func(int) []int32 { return list }
}

// allButOne is what a group has whose members come to subscribe to one more.
func allButOne(topics int) func(int) []int32 {
	list := all(topics)(0)
	return func(m int) []int32 { return list[:len(list)-m%2] }
}

// each gives every member its own choice of some topics.
func each(topics, some int) func(int) []int32 {
	r := rand.New(rand.NewPCG(1, 2))
	return func(int) []int32 { return choose(r, topics, float64(some)/float64(topics)) }
}

// row has members share topics with their neighbours only.
func row(members, topics int) func(int) []int32 {
	list := all(topics)(0)
	return func(m int) []int32 {
		from := m * (topics - 2) / members
		return list[from : from+2]
	}
}

func BenchmarkRange(b *testing.B)   { benchmark(b, Range) }
func BenchmarkUniform(b *testing.B) { benchmark(b, Uniform) }

func benchmark(b *testing.B, assign func(*Input) [][]Partitions) {
	for _, members := range []int{100, 1000, 5000} {
		for _, c := range []struct {
			name   string
			topics int
			topic  func(int) []int32
		}{
			{"same", 100, all(100)},
			{"same-10000-topics", 10000, all(10000)},
			{"two-kinds", 100, allButOne(100)},
			{"two-kinds-10000-topics", 10000, allButOne(10000)},
			{"each-20-of-1000", 1000, each(1000, 20)},
			{"row", 1000, row(members, 1000)},
		} {
			fresh := sized(members, c.topics, 10000, c.topic)
			b.Run(fmt.Sprintf("%d/%s/first", members, c.name), func(b *testing.B) { repeat(b, fresh, assign) })
			joined := sized(members, c.topics, 10000, func(m int) []int32 { return fresh.Members[m].Topics })
			joined.Members = joined.Members[:members-members/20]
			follow(joined, assign(joined))
			joined.Members = joined.Members[:members]
			b.Run(fmt.Sprintf("%d/%s/joins", members, c.name), func(b *testing.B) { repeat(b, joined, assign) })
		}
	}
}

func repeat(b *testing.B, in *Input, assign func(*Input) [][]Partitions) {
	b.ReportAllocs()
	for b.Loop() {
		assign(in)
	}
}

// What the balancer does is counted, not timed. Its work for a round is what it
// must read (the partitions, and the classes of each topic) and some comparisons
// for each partition that moves, of which a heap needs few. Were it to look at all
// subscribers for each partition, these groups would need a hundred times that.
func TestBalancerWorkGrowsWithItsInput(t *testing.T) {
	for _, n := range []int{250, 1000, 4000} {
		for name, in := range map[string]*Input{
			"two kinds":        sized(n, 100, 10000, allButOne(100)),
			"a topic for each": sized(n, 10000, 10000, allButOne(10000)),
			"all differ":       sized(n, 1000, 10000, each(1000, 20)),
			"a row":            sized(n, 1000, 10000, row(n, 1000)),
			"one topic":        sized(n, 2, 10000, allButOne(2)),
		} {
			joins := in.Members[n-n/20:]
			for range 2 { // first, and after joins
				o := newOwners(in)
				o.keep()
				b := newBalancer(o)
				built := b.work
				rounds := b.run()
				read := len(o.owner)
				for _, c := range b.choices {
					read += len(c)
				}
				limit := 3*len(in.Members) + (rounds+1)*3*read + 2*len(o.owner)*int(3*math.Log2(float64(n)))
				t.Logf("%d members, %s: %d of %d in %d rounds, with %d before", n, name, b.work, limit, rounds, built)
				if b.work > limit {
					t.Errorf("%d members, %s: work is %d, more than %d", n, name, b.work, limit)
				}
				follow(in, o.result())
				for m := range joins {
					joins[m].Previous = nil
				}
			}
		}
	}
}

// Range looks at as many subscribers of a topic as get a block, and at each class.
func TestRangeWorkGrowsWithItsInput(t *testing.T) {
	for _, n := range []int{250, 1000, 4000} {
		for name, in := range map[string]*Input{
			"a topic for each": sized(n, 10000, 10000, allButOne(10000)),
			"all differ":       sized(n, 1000, 10000, each(1000, 20)),
		} {
			order := rangeOrder(in.Members)
			q := newQueue(newSubscriptions(in, order), order)
			blocks, read := 0, 0
			o := newOwners(in)
			for t := range in.Topics {
				o.blocks(int32(t), q)
				read += len(q.choices[t])
				blocks += min(q.subscribers[t], int(in.Topics[t].Partitions))
			}
			if limit := 3*read + 2*blocks*int(math.Log2(float64(n))); q.work > limit {
				t.Errorf("%d members, %s: work is %d, more than %d", n, name, q.work, limit)
			}
		}
	}
}
