package handler_test

import (
	"runtime"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
	"muster/internal/auth"
	"muster/internal/metadata"
)

// The errors of the group APIs for who may not, and that nothing happened then.

const (
	groupDenied = int16(30)
	topicDenied = int16(29)
)

// member makes alice the only member of group g, who may do all that a member does.
func (w *guardedWorld) member() (id string, generation int32) {
	w.t.Helper()
	w.may(alice, auth.Read, auth.Group, "g")
	w.may(alice, auth.Read, auth.Topic, "t")
	joined := w.as(alice, join("g", "", nil)).(*kmsg.JoinGroupResponse)
	sync := kmsg.NewPtrSyncGroupRequest()
	sync.Version, sync.Group, sync.MemberID, sync.Generation = 3, "g", joined.MemberID, joined.Generation
	if got := w.as(alice, sync).(*kmsg.SyncGroupResponse); joined.ErrorCode != 0 || got.ErrorCode != 0 {
		w.t.Fatalf("joined %+v, synced %+v", joined, got)
	}
	return joined.MemberID, joined.Generation
}

// members returns how many members a group has, and -1 if there is no such group.
func (w *guardedWorld) members(group string) int {
	w.t.Helper()
	req := kmsg.NewPtrDescribeGroupsRequest()
	req.Version, req.Groups = 6, []string{group}
	g := w.as(root, req).(*kmsg.DescribeGroupsResponse).Groups[0]
	if g.ErrorCode == kerr.GroupIDNotFound.Code {
		return -1
	}
	return len(g.Members)
}

func TestWhoMayNotReadAGroupDoesNotJoinIt(t *testing.T) {
	w := newGuardedWorld(t)
	w.may(alice, auth.Describe, auth.Group, "g")
	if got := w.as(alice, join("g", "", nil)).(*kmsg.JoinGroupResponse); got.ErrorCode != groupDenied || got.Generation != -1 || got.MemberID != "" {
		t.Errorf("%+v", got)
	}
	beat := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	beat.Version, beat.Group, beat.MemberID, beat.SubscribedTopicNames = 1, "g", "m", []string{"t"}
	if got := w.as(alice, beat).(*kmsg.ConsumerGroupHeartbeatResponse); got.ErrorCode != groupDenied {
		t.Errorf("%+v", got)
	}
	if n := w.members("g"); n != -1 {
		t.Errorf("there is a group with %d members", n)
	}
}

func TestAMemberThatLosesItsRightIsToldSoByWhateverItDoes(t *testing.T) {
	w := newGuardedWorld(t)
	id, generation := w.member()
	w.revoke(alice)
	beat := kmsg.NewPtrHeartbeatRequest()
	beat.Version, beat.Group, beat.MemberID, beat.Generation = 3, "g", id, generation
	assert.Equal(t, w.as(alice, beat).(*kmsg.HeartbeatResponse).ErrorCode, groupDenied, "Heartbeat: error")
	sync := kmsg.NewPtrSyncGroupRequest()
	sync.Version, sync.Group, sync.MemberID, sync.Generation = 3, "g", id, generation
	if got := w.as(alice, sync).(*kmsg.SyncGroupResponse); got.ErrorCode != groupDenied || len(got.MemberAssignment) > 0 {
		t.Errorf("SyncGroup: %+v", got)
	}
	leave := kmsg.NewPtrLeaveGroupRequest()
	leave.Version, leave.Group, leave.Members = 3, "g", []kmsg.LeaveGroupRequestMember{{MemberID: id}}
	if got := w.as(alice, leave).(*kmsg.LeaveGroupResponse); got.ErrorCode != groupDenied || len(got.Members) > 0 {
		t.Errorf("LeaveGroup: %+v", got)
	}
	if n := w.members("g"); n != 1 {
		t.Errorf("the group has %d members", n)
	}
}

// committing commits offset 5 of partition 0 of t and of another topic.
func committing(group string) *kmsg.OffsetCommitRequest {
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Version, req.Group, req.Generation = 8, group, -1
	for _, topic := range []string{"t", "other"} {
		req.Topics = append(req.Topics, kmsg.OffsetCommitRequestTopic{Topic: topic, Partitions: []kmsg.OffsetCommitRequestTopicPartition{{Offset: 5}}})
	}
	return req
}

// offsets asks for those as someone, -1 where there is none, with all error codes.
func (w *guardedWorld) offsets(who auth.Principal, version int16) (offsets []int64, codes []int16) {
	w.t.Helper()
	req := kmsg.NewPtrOffsetFetchRequest()
	req.Version, req.Group = version, "g"
	g := kmsg.OffsetFetchRequestGroup{Group: "g", MemberEpoch: -1}
	for _, topic := range []string{"t", "other"} {
		req.Topics = append(req.Topics, kmsg.OffsetFetchRequestTopic{Topic: topic, Partitions: []int32{0}})
		g.Topics = append(g.Topics, kmsg.OffsetFetchRequestGroupTopic{Topic: topic, Partitions: []int32{0}})
	}
	req.Groups = append(req.Groups, g)
	resp := w.as(who, req).(*kmsg.OffsetFetchResponse)
	codes = append(codes, resp.ErrorCode)
	for _, t := range resp.Topics {
		offsets, codes = append(offsets, t.Partitions[0].Offset), append(codes, t.Partitions[0].ErrorCode)
	}
	for _, g := range resp.Groups {
		codes = append(codes, g.ErrorCode)
		for _, t := range g.Topics {
			offsets, codes = append(offsets, t.Partitions[0].Offset), append(codes, t.Partitions[0].ErrorCode)
		}
	}
	return offsets, codes
}

func (w *guardedWorld) wantOffsets(who auth.Principal, version int16, offsets []int64, codes ...int16) {
	w.t.Helper()
	if at, got := w.offsets(who, version); !slices.Equal(at, offsets) || !slices.Equal(got, codes) {
		w.t.Errorf("OffsetFetch v%d of %s: %d with errors %d, not %d with %d", version, who, at, got, offsets, codes)
	}
}

func TestOffsetsAreCommittedOnlyWhereTheClientMay(t *testing.T) {
	w := newGuardedWorld(t)
	w.create(metadata.NewTopic{Name: "other", Partitions: 1, Replication: 1})
	commit := func() (codes []int16) {
		for _, topic := range w.as(alice, committing("g")).(*kmsg.OffsetCommitResponse).Topics {
			codes = append(codes, topic.Partitions[0].ErrorCode)
		}
		return codes
	}
	w.may(alice, auth.Read, auth.Topic, "t")
	w.may(alice, auth.Describe, auth.Topic, "other")
	assert.EqualSlices(t, commit(), []int16{groupDenied, groupDenied}, "without the group")
	w.wantOffsets(root, 7, []int64{-1, -1}, 0, 0, 0)
	w.may(alice, auth.Read, auth.Group, "g")
	assert.EqualSlices(t, commit(), []int16{0, topicDenied}, "with one of two topics")
	w.wantOffsets(root, 7, []int64{5, -1}, 0, 0, 0)
}

func TestATopicThatMayNotBeReadIsDeniedWithoutTheCoordinator(t *testing.T) {
	w := newGuardedWorld(t)
	w.may(alice, auth.Read, auth.Group, "g")
	for _, topic := range w.as(alice, committing("g")).(*kmsg.OffsetCommitResponse).Topics {
		assert.Equal(t, topic.Partitions[0].ErrorCode, topicDenied, "%s: error", topic.Topic)
	}
	assert.Equal(t, w.members("g"), -1, "a commit of nothing made a group")
}

func TestOffsetsAreToldOnlyWhereTheClientMay(t *testing.T) {
	w := newGuardedWorld(t)
	w.create(metadata.NewTopic{Name: "other", Partitions: 1, Replication: 1})
	w.as(root, committing("g"))
	w.wantOffsets(alice, 1, []int64{-1, -1}, 0, groupDenied, groupDenied)
	w.wantOffsets(alice, 7, nil, groupDenied)
	w.wantOffsets(alice, 9, nil, 0, groupDenied)
	w.may(alice, auth.Describe, auth.Group, "g")
	w.may(alice, auth.Describe, auth.Topic, "t")
	for _, version := range []int16{1, 7} {
		w.wantOffsets(alice, version, []int64{5, -1}, 0, 0, topicDenied)
	}
	w.wantOffsets(alice, 9, []int64{5, -1}, 0, 0, 0, topicDenied)
	all := kmsg.NewPtrOffsetFetchRequest()
	all.Version, all.Groups = 9, []kmsg.OffsetFetchRequestGroup{{Group: "g", MemberEpoch: -1}}
	got := w.as(alice, all).(*kmsg.OffsetFetchResponse).Groups[0]
	assert.True(t, got.ErrorCode == 0 && len(got.Topics) == 1 && got.Topics[0].Topic == "t", "all offsets: %+v", got)
}

func TestTheCoordinatorIsToldOfWhatTheClientMayDescribe(t *testing.T) {
	w := newGuardedWorld(t)
	w.may(alice, auth.Read, auth.Group, "mine")
	w.may(alice, auth.Write, auth.TransactionalID, "mine")
	for kind, denied := range []int16{groupDenied, kerr.TransactionalIDAuthorizationFailed.Code} {
		req := kmsg.NewPtrFindCoordinatorRequest()
		req.Version, req.CoordinatorType, req.CoordinatorKeys = 4, int8(kind), []string{"mine", "theirs"}
		got := w.as(alice, req).(*kmsg.FindCoordinatorResponse).Coordinators
		if got[0].ErrorCode != 0 || got[0].NodeID != 1 {
			t.Errorf("mine: %+v", got[0])
		}
		if got[1].ErrorCode != denied || got[1].NodeID != -1 || got[1].Host != "" || got[1].Port != -1 {
			t.Errorf("theirs: %+v", got[1])
		}
		req.Version, req.CoordinatorKey = 3, "theirs"
		if got := w.as(alice, req).(*kmsg.FindCoordinatorResponse); got.ErrorCode != denied || got.NodeID != -1 {
			t.Errorf("theirs in version 3: %+v", got)
		}
	}
}

func TestGroupsAreDescribedListedAndDeletedEachForItself(t *testing.T) {
	w := newGuardedWorld(t)
	for _, group := range []string{"mine", "theirs"} {
		w.commit(names{topic: "t", group: group})
	}
	w.may(alice, auth.Delete, auth.Group, "mine")
	describe := kmsg.NewPtrDescribeGroupsRequest()
	describe.Version, describe.Groups, describe.IncludeAuthorizedOperations = 5, []string{"theirs", "mine"}, true
	got := w.as(alice, describe).(*kmsg.DescribeGroupsResponse).Groups
	if got[0].Group != "theirs" || got[0].ErrorCode != groupDenied || got[0].State != "" || got[1].Group != "mine" || got[1].ErrorCode != 0 || got[1].State != "Empty" {
		t.Errorf("described %+v", got)
	}
	if got[0].AuthorizedOperations != -1<<31 {
		t.Errorf("operations %b are told of a group that may not be described", got[0].AuthorizedOperations)
	}
	list := kmsg.NewPtrListGroupsRequest()
	if got := w.as(alice, list).(*kmsg.ListGroupsResponse); got.ErrorCode != 0 || len(got.Groups) != 1 || got.Groups[0].Group != "mine" {
		t.Errorf("listed %+v", got)
	}
	w.may(bob, auth.Describe, auth.Cluster, auth.ClusterName)
	if got := w.as(bob, list).(*kmsg.ListGroupsResponse); len(got.Groups) != 2 {
		t.Errorf("who may describe the cluster is listed %+v", got)
	}
	del := kmsg.NewPtrDeleteGroupsRequest()
	del.Groups = []string{"theirs", "mine"}
	for _, g := range w.as(alice, del).(*kmsg.DeleteGroupsResponse).Groups {
		assert.Equal(t, g.ErrorCode, map[string]int16{"mine": 0, "theirs": groupDenied}[g.Group], "deleted %s: error", g.Group)
	}
	assert.True(t, w.members("mine") == -1 && w.members("theirs") == 0, "the wrong group is gone")
}

func TestOffsetsAreDeletedOnlyWhereTheClientMay(t *testing.T) {
	w := newGuardedWorld(t)
	w.create(metadata.NewTopic{Name: "other", Partitions: 1, Replication: 1})
	w.as(root, committing("g"))
	req := kmsg.NewPtrOffsetDeleteRequest()
	req.Group = "g"
	for _, topic := range []string{"t", "other"} {
		req.Topics = append(req.Topics, kmsg.OffsetDeleteRequestTopic{Topic: topic, Partitions: []kmsg.OffsetDeleteRequestTopicPartition{{Partition: 0}}})
	}
	w.may(alice, auth.Read, auth.Topic, "t")
	w.may(alice, auth.Read, auth.Group, "g")
	if got := w.as(alice, req).(*kmsg.OffsetDeleteResponse); got.ErrorCode != groupDenied || len(got.Topics) > 0 {
		t.Errorf("without the group: %+v", got)
	}
	w.may(alice, auth.Delete, auth.Group, "g")
	got := w.as(alice, req).(*kmsg.OffsetDeleteResponse)
	if got.ErrorCode != 0 || len(got.Topics) != 2 || got.Topics[0].Partitions[0].ErrorCode != 0 || got.Topics[1].Topic != "other" || got.Topics[1].Partitions[0].ErrorCode != topicDenied {
		t.Errorf("with one of two topics: %+v", got)
	}
	w.wantOffsets(root, 7, []int64{-1, 5}, 0, 0, 0)
}

func TestAConsumerGroupIsDescribedToWhoMaySeeItsTopics(t *testing.T) {
	w := newGuardedWorld(t)
	w.joinNew(names{topic: "t", group: "mine"})
	w.may(alice, auth.Describe, auth.Group, "mine")
	req := kmsg.NewPtrConsumerGroupDescribeRequest()
	req.Groups, req.IncludeAuthorizedOperations = []string{"mine", "theirs"}, true
	got := w.as(alice, req).(*kmsg.ConsumerGroupDescribeResponse).Groups
	if got[0].ErrorCode != topicDenied || len(got[0].Members) > 0 || got[0].AuthorizedOperations != -1<<31 || got[1].ErrorCode != groupDenied {
		t.Errorf("without the topic: %+v", got)
	}
	w.may(alice, auth.Describe, auth.Topic, "t")
	if got := w.as(alice, req).(*kmsg.ConsumerGroupDescribeResponse).Groups[0]; got.ErrorCode != 0 || len(got.Members) != 1 {
		t.Errorf("with the topic: %+v", got)
	}
}

func TestAConsumerGroupThatHasATopicByAPatternIsHiddenToo(t *testing.T) {
	w := newGuardedWorld(t)
	pattern := "t"
	beat := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	beat.Version, beat.Group, beat.MemberID, beat.RebalanceTimeoutMillis = 1, "g", "m", 1000
	beat.SubscribedTopicRegex, beat.Topics = &pattern, []kmsg.ConsumerGroupHeartbeatRequestTopic{}
	for assigned := false; !assigned; runtime.Gosched() {
		got := w.as(root, beat).(*kmsg.ConsumerGroupHeartbeatResponse)
		assert.MustEqual(t, got.ErrorCode, 0, "%+v", got)
		assigned = got.Assignment != nil && len(got.Assignment.Topics) > 0
		beat.MemberEpoch = got.MemberEpoch
	}
	w.may(alice, auth.Describe, auth.Group, "g")
	req := kmsg.NewPtrConsumerGroupDescribeRequest()
	req.Groups = []string{"g"}
	if got := w.as(alice, req).(*kmsg.ConsumerGroupDescribeResponse).Groups[0]; got.ErrorCode != topicDenied || len(got.Members) > 0 {
		t.Errorf("%+v", got)
	}
}

func TestAConsumerThatNamesATopicItMayNotSeeDoesNotJoin(t *testing.T) {
	w := newGuardedWorld(t)
	w.may(alice, auth.Read, auth.Group, "g")
	w.may(alice, auth.Read, auth.Topic, "t")
	req := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	req.Version, req.Group, req.MemberID, req.RebalanceTimeoutMillis = 1, "g", "m", 1000
	req.SubscribedTopicNames, req.Topics = []string{"t", "theirs"}, []kmsg.ConsumerGroupHeartbeatRequestTopic{}
	if got := w.as(alice, req).(*kmsg.ConsumerGroupHeartbeatResponse); got.ErrorCode != topicDenied {
		t.Errorf("%+v", got)
	}
	if n := w.members("g"); n > 0 {
		t.Errorf("the group has %d members", n)
	}
	req.SubscribedTopicNames = []string{"t"}
	if got := w.as(alice, req).(*kmsg.ConsumerGroupHeartbeatResponse); got.ErrorCode != 0 {
		t.Errorf("%+v", got)
	}
}
