package assignor

import "testing"

// FuzzAssign reads a small group from bytes and holds the assignors against all
// rules: whatever the previous targets are, nothing is lost, given twice or given
// to a stranger.
func FuzzAssign(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{3, 5, 2, 1, 4, 7, 3, 1, 0, 1, 1, 7, 2, 9, 9})
	f.Add([]byte{5, 1, 1, 1, 1, 1, 6, 31, 0, 3, 0, 5, 0, 9, 0, 17, 0, 31, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		in := fromBytes(data)
		for name, assign := range map[string]func(*Input) [][]Partitions{"range": Range, "uniform": Uniform} {
			if err := isPartition(in, assign(in)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if err := isPure(in, assign); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if err := isShared(in, Simple(in)); err != nil {
			t.Errorf("simple: %v", err)
		}
		if err := isPure(in, Simple); err != nil {
			t.Errorf("simple: %v", err)
		}
		if len(in.Members) == 0 {
			return
		}
		result := Uniform(in)
		if len(newSubscriptions(in, inOrder(len(in.Members))).classes) == 1 {
			if err := isEven(result); err != nil {
				t.Error(err)
			}
			if got, possible := kept(in, result); got != possible {
				t.Errorf("%d stay, but %d could", got, possible)
			}
			return
		}
		want, rounds := byReference(in)
		if !sameResult(result, want) {
			t.Errorf("the target is\n%s, not\n%s", in.show(result), in.show(want))
		}
		if err := isBest(in, result); err != nil && rounds < maxRounds {
			t.Error(err)
		}
	})
}

// fromBytes makes a group of at most 7 topics and 15 members of any bytes. What
// they are short of is zero.
func fromBytes(data []byte) *Input {
	next := func(bound int) int {
		if len(data) == 0 {
			return 0
		}
		b := int(data[0]) % bound
		data = data[1:]
		return b
	}
	in := &Input{}
	for t := range next(8) {
		topic := Topic{Name: string(rune('a' + t)), Partitions: int32(next(9))}
		topic.ID[0] = byte(next(4)) // which ids have in common
		topic.ID[15] = byte(t)
		in.Topics = append(in.Topics, topic)
	}
	for m := range next(16) {
		member := Member{ID: string(rune('a' + m))}
		if n := next(8); n > 3 {
			member.Instance = string(rune('a'+n)) + member.ID
		}
		topics := next(256)
		if topics%5 == 0 {
			member.Previous = append(member.Previous, Partitions{Topic: -1, List: []int32{0}})
		}
		for t := range in.Topics {
			if topics>>t&1 == 1 {
				member.Topics = append(member.Topics, int32(t))
			}
			if had := next(256); had > 127 {
				part := Partitions{Topic: int32(t)}
				for p := range int32(7) {
					if had>>p&1 == 1 {
						part.List = append(part.List, p+int32(next(4)))
					}
				}
				member.Previous = append(member.Previous, part)
			}
		}
		if topics%7 == 0 {
			member.Previous = append(member.Previous, Partitions{Topic: 99, List: []int32{0}})
		}
		in.Members = append(in.Members, member)
	}
	return in
}
