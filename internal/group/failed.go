package group

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// failed returns the answer that tells a client of an error that is not about
// its request but about the coordinator; nil makes it a success.
func failed(req kmsg.Request, err *kerr.Error) kmsg.Response {
	var code int16
	if err != nil {
		code = err.Code
	}
	out := req.ResponseKind()
	switch resp := out.(type) {
	case *kmsg.JoinGroupResponse:
		resp.ErrorCode, resp.Generation = code, -1
		resp.MemberID = req.(*kmsg.JoinGroupRequest).MemberID
	case *kmsg.SyncGroupResponse:
		resp.ErrorCode, resp.MemberAssignment = code, []byte{}
	case *kmsg.HeartbeatResponse:
		resp.ErrorCode = code
	case *kmsg.LeaveGroupResponse:
		resp.ErrorCode = code
	case *kmsg.OffsetDeleteResponse:
		resp.ErrorCode = code
	case *kmsg.ListGroupsResponse:
		resp.ErrorCode = code
	case *kmsg.OffsetCommitResponse:
		failCommit(req.(*kmsg.OffsetCommitRequest), resp, code)
	case *kmsg.TxnOffsetCommitResponse:
		failTxnCommit(req.(*kmsg.TxnOffsetCommitRequest), resp, code)
	case *kmsg.WriteTxnMarkersResponse:
		failMarkers(req.(*kmsg.WriteTxnMarkersRequest), resp)
	case *kmsg.OffsetFetchResponse:
		for _, g := range req.(*kmsg.OffsetFetchRequest).Groups {
			e := kmsg.NewOffsetFetchResponseGroup()
			e.Group, e.ErrorCode = g.Group, code
			resp.Groups = append(resp.Groups, e)
		}
	case *kmsg.ConsumerGroupHeartbeatResponse:
		resp.ErrorCode = code
	case *kmsg.ConsumerGroupDescribeResponse:
		for _, g := range req.(*kmsg.ConsumerGroupDescribeRequest).Groups {
			e := kmsg.NewConsumerGroupDescribeResponseGroup()
			e.Group, e.ErrorCode = g, code
			resp.Groups = append(resp.Groups, e)
		}
	case *kmsg.DescribeGroupsResponse:
		for _, g := range req.(*kmsg.DescribeGroupsRequest).Groups {
			e := kmsg.NewDescribeGroupsResponseGroup()
			e.Group, e.ErrorCode = g, code
			resp.Groups = append(resp.Groups, e)
		}
	case *kmsg.DeleteGroupsResponse:
		for _, g := range req.(*kmsg.DeleteGroupsRequest).Groups {
			e := kmsg.NewDeleteGroupsResponseGroup()
			e.Group, e.ErrorCode = g, code
			resp.Groups = append(resp.Groups, e)
		}
	}
	return out
}

func failCommit(req *kmsg.OffsetCommitRequest, resp *kmsg.OffsetCommitResponse, code int16) {
	for _, t := range req.Topics {
		out := kmsg.NewOffsetCommitResponseTopic()
		out.Topic, out.TopicID = t.Topic, t.TopicID
		for _, p := range t.Partitions {
			e := kmsg.NewOffsetCommitResponseTopicPartition()
			e.Partition, e.ErrorCode = p.Partition, code
			out.Partitions = append(out.Partitions, e)
		}
		resp.Topics = append(resp.Topics, out)
	}
}
