package assignor

import (
	"fmt"
	"slices"
)

// The rules are functions from an input and a result to a complaint, or nil.

// place is a partition of a topic.
type place struct{ topic, partition int32 }

// ownersOf returns who has which partition, by the index of the member.
func ownersOf(result [][]Partitions) map[place]int {
	owners := make(map[place]int)
	for m, all := range result {
		for _, part := range all {
			for _, p := range part.List {
				owners[place{part.Topic, p}] = m
			}
		}
	}
	return owners
}

func count(all []Partitions) (n int) {
	for _, part := range all {
		n += len(part.List)
	}
	return n
}

// isPartition demands that each partition of a subscribed topic is given once, to a
// subscriber, that nothing else is given, and that all is in order.
func isPartition(in *Input, result [][]Partitions) error {
	if len(result) != len(in.Members) {
		return fmt.Errorf("%d members have %d targets", len(in.Members), len(result))
	}
	subscribed := make([]bool, len(in.Topics))
	for _, m := range in.Members {
		for _, t := range m.Topics {
			subscribed[t] = true
		}
	}
	want := make(map[place]bool)
	for t, is := range subscribed {
		for p := int32(0); is && p < in.Topics[t].Partitions; p++ {
			want[place{int32(t), p}] = true
		}
	}
	for m, all := range result {
		for i, part := range all {
			switch {
			case i > 0 && all[i-1].Topic >= part.Topic:
				return fmt.Errorf("member %d has topic %d after %d", m, part.Topic, all[i-1].Topic)
			case !slices.Contains(in.Members[m].Topics, part.Topic):
				return fmt.Errorf("member %d does not subscribe to topic %d", m, part.Topic)
			case len(part.List) == 0:
				return fmt.Errorf("member %d has nothing of topic %d", m, part.Topic)
			case !slices.IsSorted(part.List):
				return fmt.Errorf("member %d has %v", m, part.List)
			}
			for _, p := range part.List {
				if !want[place{part.Topic, p}] {
					return fmt.Errorf("partition %d of topic %d does not exist or is given twice", p, part.Topic)
				}
				delete(want, place{part.Topic, p})
			}
		}
	}
	if len(want) > 0 {
		return fmt.Errorf("%d partitions are not given", len(want))
	}
	return nil
}

// isEven demands that sizes differ by one at most.
func isEven(result [][]Partitions) error {
	least, most := count(result[0]), count(result[0])
	for _, all := range result {
		least, most = min(least, count(all)), max(most, count(all))
	}
	if most-least > 1 {
		return fmt.Errorf("one member has %d, another %d", most, least)
	}
	return nil
}

// kept returns how many partitions are with the member that had them, and the most
// that could be if sizes shall differ by one at most. Of two that had one, the
// first counts.
func kept(in *Input, result [][]Partitions) (got, possible int) {
	had, total := make([]int, len(in.Members)), 0
	now, taken := ownersOf(result), make(map[place]bool)
	for _, all := range result {
		total += count(all)
	}
	for m, member := range in.Members {
		for _, part := range member.Previous {
			for _, p := range part.List {
				at := place{part.Topic, p}
				if !slices.Contains(member.Topics, part.Topic) || p >= in.Topics[part.Topic].Partitions || taken[at] {
					continue
				}
				taken[at] = true
				had[m]++
				if now[at] == m {
					got++
				}
			}
		}
	}
	quota, extras := total/len(in.Members), total%len(in.Members)
	for _, n := range had {
		possible += min(n, quota)
		if n > quota && extras > 0 {
			possible++
			extras--
		}
	}
	return got, possible
}

// isBest demands that no partition could move to a subscriber such that the two
// loads are closer.
func isBest(in *Input, result [][]Partitions) error {
	least := make([]int, len(in.Topics)) // the least that a subscriber has
	for t := range least {
		least[t] = 1 << 30
	}
	for m := range in.Members {
		for _, t := range in.Members[m].Topics {
			least[t] = min(least[t], count(result[m]))
		}
	}
	for m, all := range result {
		for _, part := range all {
			if n := count(all); n-least[part.Topic] > 1 {
				return fmt.Errorf("member %d has %d and of topic %d, where a subscriber has %d", m, n, part.Topic, least[part.Topic])
			}
		}
	}
	return nil
}

// isPure demands that an assignor gives the same again, also for an input whose
// members share no lists, that it leaves the input alone, and that result and input
// have no memory in common, nor two lists of the result.
func isPure(in *Input, assign func(*Input) [][]Partitions) error {
	before := clone(in)
	result := assign(in)
	if !sameInput(in, before) {
		return fmt.Errorf("the input has changed")
	}
	if again := assign(clone(in)); !sameResult(again, result) {
		return fmt.Errorf("another run has another result")
	}
	spoilt := assign(in)
	for m := range spoilt {
		for i := range spoilt[m] {
			list := spoilt[m][i].List
			for j := range list {
				list[j] += 1000
			}
			_ = append(list, 7)
		}
		_ = append(spoilt[m], Partitions{Topic: 7})
	}
	for m := range spoilt {
		for i := range spoilt[m] {
			for j := range spoilt[m][i].List {
				spoilt[m][i].List[j] -= 1000
			}
		}
	}
	if !sameInput(in, before) || !sameResult(spoilt, result) {
		return fmt.Errorf("result and input, or two lists of the result, share memory")
	}
	return nil
}

// sameResult and sameInput compare in time for large groups, which package reflect
// does not do under the race detector.
func sameResult(a, b [][]Partitions) bool { return slices.EqualFunc(a, b, sameTarget) }

func sameTarget(a, b []Partitions) bool {
	return slices.EqualFunc(a, b, func(x, y Partitions) bool { return x.Topic == y.Topic && slices.Equal(x.List, y.List) })
}

func sameInput(a, b *Input) bool {
	return slices.Equal(a.Topics, b.Topics) && slices.EqualFunc(a.Members, b.Members, func(x, y Member) bool {
		return x.ID == y.ID && x.Instance == y.Instance && slices.Equal(x.Topics, y.Topics) && sameTarget(x.Previous, y.Previous)
	})
}
