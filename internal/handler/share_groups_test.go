package handler_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
	"muster/internal/metadata"
)

func TestAShareGroupIsJoinedDescribedAndDeleted(t *testing.T) {
	w := newWorld(t)
	w.create(metadata.NewTopic{Name: "shared", Partitions: 2, Replication: 1})
	beat := func(epoch int32) *kmsg.ShareGroupHeartbeatResponse {
		req := &kmsg.ShareGroupHeartbeatRequest{Version: 1, GroupID: "g", MemberID: "m", MemberEpoch: epoch}
		if epoch == 0 {
			req.SubscribedTopicNames = []string{"shared"}
		}
		return w.request(req).(*kmsg.ShareGroupHeartbeatResponse)
	}
	joined := beat(0)
	if joined.ErrorCode != 0 || joined.MemberEpoch != 2 || joined.HeartbeatIntervalMillis != 5000 || joined.Assignment == nil || len(joined.Assignment.TopicPartitions) != 0 {
		t.Fatalf("joined: %+v", joined)
	}
	described := w.request(&kmsg.ShareGroupDescribeRequest{Version: 1, GroupIDs: []string{"g", "h", "h"}, IncludeAuthorizedOperations: true}).(*kmsg.ShareGroupDescribeResponse).Groups
	if len(described) != 2 || described[0].GroupState != "Stable" || len(described[0].Members) != 1 || described[0].AuthorizedOperations == -1<<31 || described[1].ErrorCode != kerr.GroupIDNotFound.Code {
		t.Errorf("described: %+v", described)
	}
	listed := w.request(&kmsg.ListGroupsRequest{Version: 5, TypesFilter: []string{"Share"}}).(*kmsg.ListGroupsResponse).Groups
	if len(listed) != 1 || listed[0].GroupType != "share" || listed[0].ProtocolType != "share" {
		t.Errorf("listed: %+v", listed)
	}
	offsets := w.request(&kmsg.DescribeShareGroupOffsetsRequest{Version: 1, Groups: []kmsg.DescribeShareGroupOffsetsRequestGroup{{GroupID: "g", Topics: []kmsg.DescribeShareGroupOffsetsRequestGroupTopic{{Topic: "shared", Partitions: []int32{0, 1, 0}}}}}}).(*kmsg.DescribeShareGroupOffsetsResponse).Groups
	if len(offsets) != 1 || len(offsets[0].Topics) != 1 || len(offsets[0].Topics[0].Partitions) != 2 || offsets[0].Topics[0].Partitions[0].StartOffset != -1 {
		t.Errorf("offsets: %+v", offsets)
	}
	deleted := func() int16 {
		return w.request(&kmsg.DeleteGroupsRequest{Version: 2, Groups: []string{"g"}}).(*kmsg.DeleteGroupsResponse).Groups[0].ErrorCode
	}
	assert.Equal(t, deleted(), kerr.NonEmptyGroup.Code, "with a member")
	altered := w.request(&kmsg.AlterShareGroupOffsetsRequest{GroupID: "g", Topics: []kmsg.AlterShareGroupOffsetsRequestTopic{{Topic: "shared", Partitions: make([]kmsg.AlterShareGroupOffsetsRequestTopicPartition, 1)}}}).(*kmsg.AlterShareGroupOffsetsResponse)
	assert.Equal(t, altered.ErrorCode, kerr.NonEmptyGroup.Code, "altered with a member")
	assert.Equal(t, beat(-1).MemberEpoch, -1, "left in epoch")
	forgotten := w.request(&kmsg.DeleteShareGroupOffsetsRequest{GroupID: "none", Topics: []kmsg.DeleteShareGroupOffsetsRequestTopic{{Topic: "shared"}}}).(*kmsg.DeleteShareGroupOffsetsResponse)
	assert.Equal(t, forgotten.ErrorCode, kerr.GroupIDNotFound.Code, "forgotten")
}
