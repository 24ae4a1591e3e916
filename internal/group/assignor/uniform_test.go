package assignor

import (
	"slices"
	"testing"
)

type uniformCase struct {
	name, topics string
	members      []string
	want         []string
}

func (c uniformCase) run(t *testing.T) {
	t.Run(c.name, func(t *testing.T) {
		in := parse(t, c.topics, c.members...)
		demand(t, in, Uniform(in), c.want...)
	})
}

func TestUniformDealsWhatNobodyHad(t *testing.T) {
	for _, c := range []uniformCase{
		{"it divides", "a4", []string{"x: a", "y: a"}, []string{"x: a0 a1", "y: a2 a3"}},
		{"the last have more", "a5", []string{"x: a", "y: a", "z: a"}, []string{"x: a0", "y: a1 a2", "z: a3 a4"}},
		{"over all topics together", "a3 b3", []string{"x: a b", "y: a b"}, []string{"x: a0 a1 a2", "y: b0 b1 b2"}},
		{"fewer partitions than members", "a1", []string{"x: a", "y: a", "z: a"}, []string{"x:", "y:", "z: a0"}},
		{"a topic grew", "a6", []string{"x: a | a0 a1", "y: a | a2 a3"}, []string{"x: a0 a1 a4", "y: a2 a3 a5"}},
		{"no topics", "a1", []string{"x:", "y:"}, []string{"x:", "y:"}},
		{"one member", "a2 b1", []string{"x: a b"}, []string{"x: a0 a1 b0"}},
		{"a topic that nobody subscribes to", "a3 b2", []string{"x: b", "y: b"}, []string{"x: b0", "y: b1"}},
	} {
		c.run(t)
	}
}

func TestAGroupWithoutMembersHasNoTarget(t *testing.T) {
	in := parse(t, "a2")
	if len(Uniform(in)) != 0 || len(Range(in)) != 0 {
		t.Errorf("uniform has %v, range %v", Uniform(in), Range(in))
	}
}

// KAFKA-18688: the extra partition stays with who has it.
func TestUniformMovesNothingOfWhatIsBalanced(t *testing.T) {
	for _, c := range []uniformCase{
		{"it divides", "a4", []string{"x: a | a1 a3", "y: a | a0 a2"}, []string{"x: a1 a3", "y: a0 a2"}},
		{"the first has more", "a3", []string{"x: a | a0 a2", "y: a | a1"}, []string{"x: a0 a2", "y: a1"}},
		{"the last has more", "a3", []string{"x: a | a0", "y: a | a1 a2"}, []string{"x: a0", "y: a1 a2"}},
		{"the one between has more", "a4", []string{"x: a | a0", "y: a | a1 a3", "z: a | a2"}, []string{"x: a0", "y: a1 a3", "z: a2"}},
		{"some have none", "a2", []string{"w: a", "x: a | a1", "y: a", "z: a | a0"}, []string{"w:", "x: a1", "y:", "z: a0"}},
		{"of several topics", "a2 b3", []string{"x: a b | a1 b0 b2", "y: a b | a0 b1"}, []string{"x: a1 b0 b2", "y: a0 b1"}},
	} {
		c.run(t)
	}
}

func TestUniformGivesAMemberThatJoinsWhatOthersHaveTooMuchOf(t *testing.T) {
	for _, c := range []uniformCase{
		{"from both", "a6", []string{"x: a | a0 a1 a2", "y: a | a3 a4 a5", "z: a"}, []string{"x: a0 a1", "y: a3 a4", "z: a2 a5"}},
		{"in front", "a6", []string{"w: a", "x: a | a0 a1 a2", "y: a | a3 a4 a5"}, []string{"w: a2 a5", "x: a0 a1", "y: a3 a4"}},
		{"the first keeps its extra", "a4", []string{"x: a | a0 a1", "y: a | a2 a3", "z: a"}, []string{"x: a0 a1", "y: a2", "z: a3"}},
		{"there is nothing to give", "a2", []string{"x: a | a0", "y: a | a1", "z: a"}, []string{"x: a0", "y: a1", "z:"}},
		{"the last topic goes first", "a2 b2", []string{"x: a b | a0 a1 b0 b1", "y: a b"}, []string{"x: a0 a1", "y: b0 b1"}},
	} {
		c.run(t)
	}
}

func TestUniformDealsWhatAMemberThatLeftHad(t *testing.T) {
	for _, c := range []uniformCase{
		{"to all", "a6", []string{"x: a | a0 a1", "z: a | a4 a5"}, []string{"x: a0 a1 a2", "z: a3 a4 a5"}},
		{"to who has less", "a5", []string{"x: a | a0 a1", "z: a | a4"}, []string{"x: a0 a1", "z: a2 a3 a4"}},
		{"to one", "a3", []string{"y: a | a1"}, []string{"y: a0 a1 a2"}},
	} {
		c.run(t)
	}
}

func TestUniformForgetsWhatAMemberMayNotKeep(t *testing.T) {
	for _, c := range []uniformCase{
		{"unsubscribed by all", "a2 b2", []string{"x: b | a0 a1", "y: b | b0 b1"}, []string{"x: b1", "y: b0"}},
		{"unsubscribed by one", "a2 b2", []string{"x: b | a0 a1", "y: a b | b0 b1"}, []string{"x: b0 b1", "y: a0 a1"}},
		{"two had it", "a3", []string{"x: a | a0 a1", "y: a | a0 a1 a2"}, []string{"x: a0 a1", "y: a2"}},
		{"it does not exist", "a2", []string{"x: a | a2 a3", "y: a | a1"}, []string{"x: a0", "y: a1"}},
		{"two had it, and they differ", "a2 b1", []string{"x: a b | a0 a1", "y: a | a0 a1"}, []string{"x: a0 b0", "y: a1"}},
	} {
		c.run(t)
	}
}

// A target may be from a time when there were other topics.
func TestUniformForgetsTopicsThatItDoesNotKnow(t *testing.T) {
	unknown := func(in *Input) *Input {
		old := func(topic int32) []Partitions { return []Partitions{{Topic: topic, List: []int32{0, 1}}} }
		in.Members[0].Previous = slices.Concat(old(-1), in.Members[0].Previous, old(7))
		return in
	}
	same := unknown(parse(t, "a3 b1", "x: a b | a0 a1 a2 b0", "y: a b"))
	demand(t, same, Uniform(same), "x: a0 a1", "y: a2 b0")
	differ := unknown(parse(t, "a3 b1", "x: a b | a0 a1 a2", "y: a"))
	demand(t, differ, Uniform(differ), "x: a0 b0", "y: a1 a2")
}
