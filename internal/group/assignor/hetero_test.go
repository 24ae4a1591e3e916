package assignor

import (
	"fmt"
	"strings"
	"testing"
)

// Which topic is dealt first shows in who gets what: a later one goes to who has
// less by then.
func TestHeteroOrder(t *testing.T) {
	for _, c := range []uniformCase{
		// a has 2 for each subscriber, b 1.5: a first, so that b makes up for it.
		{"more partitions per subscriber first", "a2 b3", []string{"x: a b", "y: b"}, []string{"x: a0 a1 b2", "y: b0 b1"}},
		// a has 2, b 1.25. If b came first, all would have some of it.
		{"that is not more partitions", "a4 b5", []string{"w: b", "x: a b", "y: a b", "z: b"}, []string{"w: b0 b2 b4", "x: a0 a2", "y: a1 a3", "z: b1 b3"}},
		// Both have 1; a has two subscribers, b has one.
		{"then fewer subscribers", "a2 b1", []string{"x: a b", "y: a"}, []string{"x: a1 b0", "y: a0"}},
		{"then the topic id", "a1/9 b1/5", []string{"x: a b", "y: a b", "z:"}, []string{"x: b0", "y: a0", "z:"}},
		{"which is no name", "a1/5 b1/9", []string{"x: a b", "y: a b", "z:"}, []string{"x: a0", "y: b0", "z:"}},
		{"to the least loaded of all topics together", "a3 b1 c2", []string{"x: a c", "y: b c", "z: c"}, []string{"x: a0 a1 a2", "y: b0 c1", "z: c0"}},
		{"then by member id", "a3 b1", []string{"x: a", "y: a b", "z: a"}, []string{"x: a0 a2", "y: b0", "z: a1"}},
	} {
		c.run(t)
	}
}

func TestHeteroMoves(t *testing.T) {
	for _, c := range []uniformCase{
		{"nothing of what is balanced", "a3 b2", []string{"x: a b | a1 b1", "y: a | a0 a2", "z: b | b0"}, []string{"x: a1 b1", "y: a0 a2", "z: b0"}},
		{"not for a difference of one", "a3 b1", []string{"x: a | a1 a2", "y: a b | a0"}, []string{"x: a1 a2", "y: a0 b0"}},
		{"the highest partition first", "a4 b1", []string{"x: a | a0 a1 a2 a3", "y: a b"}, []string{"x: a0 a1 a2", "y: a3 b0"}},
		{"from the most loaded", "a6 b1", []string{"x: a | a0", "y: a | a1 a2 a3 a4 a5", "z: a b"}, []string{"x: a0 a5", "y: a1 a2 a3", "z: a4 b0"}},
		{"not what only one subscribes to", "a5 b1", []string{"x: a b", "y: b | b0"}, []string{"x: a0 a1 a2 a3 a4", "y: b0"}},
		{"past the most loaded, which has none", "a9 b4", []string{"x: a b | a0 a1 a2 a3 a4 a5 a6 a7 a8", "y: b | b0 b1 b2 b3", "z: b"}, []string{"x: a0 a1 a2 a3 a4 a5 a6 a7 a8", "y: b0 b1", "z: b2 b3"}},
		{"only what it has", "a4 b1 c1", []string{"x: a b | a0 a1 a2 a3 b0", "y: b c"}, []string{"x: a0 a1 a2 a3", "y: b0 c0"}},
		{"among equals from the last to the first", "a4 b1", []string{"w: a | a0 a1", "x: a | a2 a3", "y: a", "z: b"}, []string{"w: a0 a1", "x: a2", "y: a3", "z: b0"}},
	} {
		c.run(t)
	}
}

// Members stand in a row, and each shares a topic of one partition with the next.
// What else they have is a topic of their own: one more than the member before
// them, and the last two more. The last gives its shared partition to the one
// before it, which can then give its own: in the next round, because the topics are
// gone through in the other direction.
func TestHeteroRounds(t *testing.T) {
	const members = 20
	in := &Input{}
	add := func(partitions int32) int32 {
		i := len(in.Topics)
		in.Topics = append(in.Topics, Topic{ID: [16]byte{byte(i)}, Name: fmt.Sprintf("%02d", i), Partitions: partitions})
		return int32(i)
	}
	for range members - 1 {
		add(1) // the topic that member i and i+1 share
	}
	for i := range int32(members) {
		m := Member{ID: fmt.Sprintf("%02d", i)}
		load := i + 1 // with what it has of the shared topic
		if i == members-1 {
			load++
		}
		if i > 0 {
			m.Topics = append(m.Topics, i-1)
			m.Previous = append(m.Previous, Partitions{Topic: i - 1, List: []int32{0}})
			load--
		}
		if i < members-1 {
			m.Topics = append(m.Topics, i)
		}
		own := add(load)
		m.Topics = append(m.Topics, own)
		in.Members = append(in.Members, m)
	}
	hops := func(result [][]Partitions) string {
		var moved strings.Builder
		for i := range members - 1 {
			who := "."
			for _, part := range result[i] {
				if part.Topic == int32(i) {
					who = "<"
				}
			}
			moved.WriteString(who)
		}
		return moved.String()
	}
	first := Uniform(in)
	if got := hops(first); got != "...<<<<<<<<<<<<<<<<" {
		t.Errorf("after one run %s", got)
	}
	for m := range in.Members {
		in.Members[m].Previous = first[m]
	}
	if got := hops(Uniform(in)); got != strings.Repeat("<", members-1) {
		t.Errorf("after two runs %s", got)
	}
}
