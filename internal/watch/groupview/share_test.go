package groupview

import (
	"errors"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestAShareGroupIsReadWithItsMembers(t *testing.T) {
	resp := kmsg.NewPtrShareGroupDescribeResponse()
	member := func(id string, partitions ...int32) kmsg.ShareGroupDescribeResponseGroupMember {
		m := kmsg.NewShareGroupDescribeResponseGroupMember()
		m.MemberID, m.ClientID, m.ClientHost, m.MemberEpoch, m.SubscribedTopicNames = id, "client", "/10.0.0.1", 3, []string{"t"}
		m.Assignment.TopicPartitions = []kmsg.ShareGroupDescribeResponseGroupMemberAssignmentTopicPartition{{Topic: "t", Partitions: partitions}}
		return m
	}
	resp.Groups = []kmsg.ShareGroupDescribeResponseGroup{
		{GroupID: "a", GroupState: Stable, GroupEpoch: 4, AssignmentEpoch: 3, Assignor: "simple", Members: []kmsg.ShareGroupDescribeResponseGroupMember{member("y", 1, 0), member("x", 0)}},
		{GroupID: "b", ErrorCode: kerr.GroupIDNotFound.Code},
	}
	got := readShares(resp)
	if len(got) != 2 || got[0].Err != nil || !errors.Is(got[1].Err, kerr.GroupIDNotFound) {
		t.Fatalf("read is %+v", got)
	}
	g := got[0].Group
	equal(t, []string{g.Type, g.State, g.Assignor, g.Members[0].ID, g.Members[0].Host, g.Members[1].Topics[0]}, []string{TypeShare, Stable, "simple", "x", "10.0.0.1", "t"}, "the group")
	equal(t, g.Members[1].Assigned[0].Partitions, []int32{0, 1}, "what y has")
	equal(t, []int32{*g.Epoch, *g.TargetEpoch, *g.Members[0].Epoch}, []int32{4, 3, 3}, "the epochs")
}

func equal[T comparable](t *testing.T, got, want []T, what string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}
