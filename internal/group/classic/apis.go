package classic

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/kind"
)

// APIs is the requests of the classic protocol.
var APIs = table()

func table() []kind.API {
	joins := kind.Serves(join, failJoin)
	joins.Random = func(kmsg.Request) bool { return true } // Of which the id of a member is made.
	beats := kind.Serves(heartbeat, func(_ *kmsg.HeartbeatRequest, resp *kmsg.HeartbeatResponse, code int16) { resp.ErrorCode = code })
	beats.Patient = true // It is Kafka's rule.
	return []kind.API{
		joins, beats, kind.Serves(sync, failSync), kind.Serves(describe, failDescribe),
		kind.Serves(leave, func(_ *kmsg.LeaveGroupRequest, resp *kmsg.LeaveGroupResponse, code int16) { resp.ErrorCode = code }),
	}
}

func failJoin(req *kmsg.JoinGroupRequest, resp *kmsg.JoinGroupResponse, code int16) {
	resp.ErrorCode, resp.Generation, resp.MemberID = code, -1, req.MemberID
}

func failSync(_ *kmsg.SyncGroupRequest, resp *kmsg.SyncGroupResponse, code int16) {
	resp.ErrorCode, resp.MemberAssignment = code, []byte{}
}

func failDescribe(req *kmsg.DescribeGroupsRequest, resp *kmsg.DescribeGroupsResponse, code int16) {
	for _, g := range req.Groups {
		e := kmsg.NewDescribeGroupsResponseGroup()
		e.Group, e.ErrorCode = g, code
		resp.Groups = append(resp.Groups, e)
	}
}
