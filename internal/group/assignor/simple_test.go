package assignor

import (
	"fmt"
	"slices"
	"testing"
)

// isShared demands what every result of Simple has: partitions exist and are subscribed to,
// each has a member if anyone subscribes, and no member has none if there are any for it.
func isShared(in *Input, result [][]Partitions) error {
	if len(result) != len(in.Members) {
		return fmt.Errorf("%d members have %d targets", len(in.Members), len(result))
	}
	sharers, subscribed := map[place]int{}, make([]bool, len(in.Topics))
	for m, member := range in.Members {
		there := false
		for _, t := range member.Topics {
			there = there || in.Topics[t].Partitions > 0
			subscribed[t] = true
		}
		if there != (count(result[m]) > 0) {
			return fmt.Errorf("member %d has %v", m, result[m])
		}
	}
	for t, is := range subscribed {
		for p := int32(0); is && p < in.Topics[t].Partitions; p++ {
			sharers[place{int32(t), p}] = 0
		}
	}
	for m, parts := range result {
		last := int32(-1)
		for _, part := range parts {
			if part.Topic <= last || len(part.List) == 0 || !slices.Contains(in.Members[m].Topics, part.Topic) {
				return fmt.Errorf("member %d has %v", m, parts)
			}
			last = part.Topic
			for i, p := range part.List {
				if p < 0 || p >= in.Topics[part.Topic].Partitions || i > 0 && part.List[i-1] >= p {
					return fmt.Errorf("member %d has %v", m, parts)
				}
				sharers[place{part.Topic, p}]++
			}
		}
	}
	for p, n := range sharers {
		if n == 0 {
			return fmt.Errorf("no one has %v", p)
		}
	}
	return nil
}

// isEvenlyShared demands, of members with the same topics, the numbers that Kafka names.
func isEvenlyShared(in *Input, result [][]Partitions) error {
	sharers := map[place]int{}
	for _, t := range in.Members[0].Topics {
		for p := range in.Topics[t].Partitions {
			sharers[place{t, p}] = 0
		}
	}
	if len(sharers) == 0 {
		return nil
	}
	for _, parts := range result {
		for _, part := range parts {
			for _, p := range part.List {
				sharers[place{part.Topic, p}]++
			}
		}
	}
	if err := isEven(result); err != nil {
		return err
	}
	least, most := max(1, len(in.Members)/len(sharers)), (len(in.Members)+len(sharers)-1)/len(sharers)
	for p, n := range sharers {
		if n < least || n > most {
			return fmt.Errorf("%v has %d members, not %d to %d", p, n, least, most)
		}
	}
	for m, parts := range result {
		if len(in.Members) >= len(sharers) && count(parts) != 1 {
			return fmt.Errorf("member %d has %d", m, count(parts))
		}
	}
	return nil
}

// more makes a group larger than its partitions: each topic has one or two.
func more(in *Input) *Input {
	in = clone(in)
	for t := range in.Topics {
		in.Topics[t].Partitions = min(in.Topics[t].Partitions, int32(1+t%2))
	}
	return in
}

func TestSimpleSharesEveryPartition(t *testing.T) {
	everyGroup(t, func(t *testing.T, in *Input) {
		for _, in := range []*Input{in, more(in)} {
			if err := isShared(in, Simple(in)); err != nil {
				t.Error(err)
			}
			if err := isPure(in, Simple); err != nil {
				t.Error(err)
			}
			follow(in, Simple(in))
			if err := isShared(in, Simple(in)); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestSimpleIsEvenIfTopicsAreTheSame(t *testing.T) {
	everyGroupOf(t, sameTopic, func(t *testing.T, in *Input) {
		for _, in := range []*Input{in, more(in)} {
			result := Simple(in)
			if err := isEvenlyShared(in, result); err != nil {
				t.Error(err)
			}
			follow(in, result)
			if again := Simple(in); !sameResult(again, result) {
				t.Errorf("what is balanced moves: %s, then %s", in.show(result), in.show(again))
			}
		}
	})
}

// While members join and leave, those that share stay where they are as far as partitions stay
// evenly shared: as many move as one that left, or that came, makes necessary.
func TestSimpleFollowsLeavesAndJoins(t *testing.T) {
	for _, s := range seeds {
		for seed := range s.count {
			in, r := generate(seed, s.size, sameTopic)
			in = more(in)
			follow(in, Simple(in))
			for range 10 {
				had := map[string][]Partitions{}
				partitions := 0
				for _, m := range in.Members {
					had[m.ID] = m.Previous
				}
				for _, topic := range in.Members[0].Topics {
					partitions += int(in.Topics[topic].Partitions)
				}
				many := len(in.Members) > partitions
				if r.IntN(2) == 0 && len(in.Members) > 1 {
					leave(in, r)
				} else {
					in.Members[join(in, r)].ID += fmt.Sprint("-", len(in.Members), "-", r.Uint64())
				}
				result := Simple(in)
				if err := isEvenlyShared(in, result); err != nil {
					t.Fatalf("%s, seed %d: %v", s.name, seed, err)
				}
				moved := 0
				for m, parts := range result {
					if before, ok := had[in.Members[m].ID]; ok && !sameTarget(before, parts) {
						moved++
					}
				}
				if many && len(in.Members) > partitions && moved > 1 {
					t.Fatalf("%s, seed %d: %d move", s.name, seed, moved)
				}
				follow(in, result)
			}
		}
	}
}

func TestSimpleByExample(t *testing.T) {
	for _, c := range []struct {
		name, topics string
		members      []string
		want         []string
	}{
		{"one each", "a2", []string{"x: a", "y: a"}, []string{"x: a0", "y: a1"}},
		{"more partitions", "a5", []string{"x: a", "y: a"}, []string{"x: a0 a1", "y: a2 a3 a4"}},
		{"more members", "a2", []string{"v: a", "w: a", "x: a", "y: a", "z: a"}, []string{"v: a0", "w: a1", "x: a0", "y: a0", "z: a1"}},
		{"kept", "a2", []string{"x: a | a1", "y: a | a1", "z: a | a0"}, []string{"x: a1", "y: a1", "z: a0"}},
		{"too many have it", "a2", []string{"w: a | a1", "x: a | a1", "y: a | a1", "z: a | a0"}, []string{"w: a1", "x: a1", "y: a0", "z: a0"}},
		{"no one has one", "a3", []string{"v: a | a1", "w: a | a1", "x: a | a0", "y: a | a0"}, []string{"v: a1", "w: a1", "x: a0", "y: a2"}},
		{"other topics", "a1 b1", []string{"x: a", "y: a b", "z: b"}, []string{"x: a0", "y: b0", "z: b0"}},
		{"few beside many", "a3 b1", []string{"w: a b", "x: b | b0", "y: a", "z: a"}, []string{"w: a0", "x: b0", "y: a1", "z: a2"}},
		{"no longer subscribed", "a1 b1", []string{"x: a | b0", "y: a | a0"}, []string{"x: a0", "y: a0"}},
		{"no such partition", "a2", []string{"x: a | a0", "y: a | a1", "z: a | a7"}, []string{"x: a0", "y: a1", "z: a0"}},
		{"nothing", "a0", []string{"x: a", "y:"}, []string{"x:", "y:"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := parse(t, c.topics, c.members...)
			demand(t, in, Simple(in), c.want...)
		})
	}
}
