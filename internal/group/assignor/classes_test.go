package assignor

import (
	"reflect"
	"testing"
)

func TestMembersWithTheSameTopicsAreOneClass(t *testing.T) {
	in := parse(t, "a1 b1 c1", "u: a b", "v: a", "w:", "x: a b", "y:", "z: a c")
	in.Members[1].Topics = in.Members[0].Topics[:1] // It begins at the same address.
	s := newSubscriptions(in, []int32{5, 4, 3, 2, 1, 0})
	if want := []int32{0, 1, 2, 0, 2, 3}; !reflect.DeepEqual(s.class, want) {
		t.Errorf("classes are %v, not %v", s.class, want)
	}
	if got, want := s.classes[0].members, []int32{3, 0}; !reflect.DeepEqual(got, want) {
		t.Errorf("the first has %v, not %v", got, want)
	}
	if want := []int{4, 2, 1}; !reflect.DeepEqual(s.subscribers, want) {
		t.Errorf("topics have %v subscribers, not %v", s.subscribers, want)
	}
	if want := [][]int32{{0, 1, 3}, {0}, {3}}; !reflect.DeepEqual(s.choices, want) {
		t.Errorf("topics have classes %v, not %v", s.choices, want)
	}
}

// Lists that differ may have the same sum. None are known, so this pretends.
func TestClassesAreComparedNotOnlyTheirSums(t *testing.T) {
	s := &subscriptions{}
	a, b, c := []int32{1, 2}, []int32{1, 3}, []int32{4}
	sums := map[uint64]int32{}
	if got := s.find(a, sums); got != 0 {
		t.Errorf("the first class is %d", got)
	}
	sums[sum(b)] = 0
	if got := s.find(b, sums); got != 1 {
		t.Errorf("another list is in class %d", got)
	}
	sums[sum(c)] = 1
	if got := s.find(c, sums); got != 2 {
		t.Errorf("a third list is in class %d", got)
	}
	sums[sum(a)], sums[sum(b)] = 2, 2
	for want, topics := range [][]int32{a, b, c} {
		if got := s.find(topics, sums); got != int32(want) {
			t.Errorf("%v is in class %d, not %d", topics, got, want)
		}
	}
}
