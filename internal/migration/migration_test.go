package migration

import (
	"strings"
	"testing"
)

// What stands in the way is told whole: of the group, then of its members.
func TestAllObstaclesAreListed(t *testing.T) {
	var got []string
	for _, o := range OfGroup(Group{ProtocolType: "connect", Members: 3, Policy: Downgrade, MaxSize: 2}) {
		got = append(got, o.Member+": "+o.Reason)
	}
	members := []Member{
		{ID: "a", Assigned: []Partition{{"t", 0}, {"t", 0}}},
		{ID: "b", UnreadableSubscription: true, UserData: true},
		{ID: "c", UnreadableAssignment: true},
		{ID: "d", UserData: true},
		{ID: "e", Assigned: []Partition{{"u", 0}, {"t", 0}}},
	}
	for _, o := range OfMembers(members) {
		got = append(got, o.Member+": "+o.Reason)
		if (o.Member == "e") != (o.Other == "a") {
			t.Errorf("%+v is about another member", o)
		}
	}
	want := `: group.consumer.migration.policy is downgrade
: its protocol type is "connect", not that of consumers
: it has 3 members, and group.consumer.max.size is 2
b: the subscription of member b cannot be read
c: the assignment of member c cannot be read
d: the assignment of member d has data of a custom assignor, which would be lost
e: partition 0 of topic t is assigned to member a and to member e`
	if strings.Join(got, "\n") != want {
		t.Errorf("the obstacles are\n%s", strings.Join(got, "\n"))
	}
}

func TestNothingStandsInTheWay(t *testing.T) {
	for _, policy := range []Policy{Both, Upgrade} {
		if list := OfGroup(Group{ProtocolType: ProtocolType, Members: 2, Policy: policy, MaxSize: 2}); len(list) > 0 {
			t.Errorf("with policy %s: %v", policy, list)
		}
	}
	if list := OfMembers([]Member{{ID: "a", Assigned: []Partition{{"t", 0}}}, {ID: "b", Assigned: []Partition{{"t", 1}}}}); len(list) > 0 {
		t.Errorf("%v", list)
	}
}

func TestPoliciesAllowDirections(t *testing.T) {
	for policy, want := range map[Policy][3]bool{
		Both: {true, true, false}, Upgrade: {true, false, false}, Downgrade: {false, true, false}, Never: {false, false, true}, "": {false, false, true},
	} {
		if got := [3]bool{policy.Upgrades(), policy.Downgrades(), policy.Disabled()}; got != want {
			t.Errorf("policy %q allows %v, not %v", policy, got, want)
		}
	}
}
