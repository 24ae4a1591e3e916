package assignor

import "testing"

func TestRangeGivesBlocks(t *testing.T) {
	for _, c := range []struct {
		name, topics string
		members      []string
		want         []string
	}{
		{"it divides", "a6", []string{"x: a", "y: a", "z: a"}, []string{"x: a0 a1", "y: a2 a3", "z: a4 a5"}},
		{"the first have more", "a8", []string{"x: a", "y: a", "z: a"}, []string{"x: a0 a1 a2", "y: a3 a4 a5", "z: a6 a7"}},
		{"fewer partitions than members", "a2", []string{"x: a", "y: a", "z: a"}, []string{"x: a0", "y: a1", "z:"}},
		{"topics of one size have the same blocks", "a3 b3", []string{"x: a b", "y: a b"}, []string{"x: a0 a1 b0 b1", "y: a2 b2"}},
		{"topics of other sizes have their own", "a3 b4", []string{"x: a b", "y: a b"}, []string{"x: a0 a1 b0 b1", "y: a2 b2 b3"}},
		{"only subscribers count", "a4 b3", []string{"x: a", "y: a b", "z: b"}, []string{"x: a0 a1", "y: a2 a3 b0 b1", "z: b2"}},
		{"nobody subscribes", "a4 b1", []string{"x: b", "y:"}, []string{"x: b0", "y:"}},
		{"a topic without partitions", "a0 b1", []string{"x: a b", "y: a b"}, []string{"x: b0", "y:"}},
		{"nothing is sticky", "a4", []string{"x: a | a2 a3", "y: a | a0 a1"}, []string{"x: a0 a1", "y: a2 a3"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := parse(t, c.topics, c.members...)
			demand(t, in, Range(in), c.want...)
		})
	}
}

func TestRangePutsStaticMembersFirst(t *testing.T) {
	for _, c := range []struct {
		name    string
		members []string
		want    []string
	}{
		{"before the others", []string{"x: a", "y@i: a", "z: a"}, []string{"x: a2 a3", "y: a0 a1", "z: a4"}},
		{"by instance id", []string{"x@k: a", "y@i: a", "z@j: a"}, []string{"x: a4", "y: a0 a1", "z: a2 a3"}},
		{"both", []string{"w: a", "x@k: a", "y: a", "z@j: a"}, []string{"w: a3", "x: a2", "y: a4", "z: a0 a1"}},
		{"in the topics they subscribe to", []string{"x: a", "y@i:", "z@j: a"}, []string{"x: a3 a4", "y:", "z: a0 a1 a2"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := parse(t, "a5", c.members...)
			demand(t, in, Range(in), c.want...)
		})
	}
}

// A static member that comes back under another member id has its old place.
func TestRangeKeepsThePlaceOfAnInstance(t *testing.T) {
	before := parse(t, "a4", "b: a", "x@i: a", "y@j: a")
	demand(t, before, Range(before), "b: a3", "x: a0 a1", "y: a2")
	after := parse(t, "a4", "a@j: a", "b: a", "x@i: a")
	demand(t, after, Range(after), "a: a2", "b: a3", "x: a0 a1")
}
