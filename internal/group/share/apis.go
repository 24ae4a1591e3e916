package share

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/kind"
)

// APIs is the requests of share groups, but for those by which records are fetched and
// acknowledged, which are the leaders'.
var APIs = []kind.API{
	kind.Serves(heartbeat, failHeartbeat), kind.Serves(describe, failDescribe),
	kind.Serves(describeOffsets, failDescribeOffsets), kind.Serves(alterOffsets, failAlterOffsets), kind.Serves(deleteOffsets, failDeleteOffsets),
}

func failHeartbeat(_ *kmsg.ShareGroupHeartbeatRequest, resp *kmsg.ShareGroupHeartbeatResponse, code int16) {
	resp.ErrorCode = code
}

func failDescribe(req *kmsg.ShareGroupDescribeRequest, resp *kmsg.ShareGroupDescribeResponse, code int16) {
	for _, g := range req.GroupIDs {
		e := kmsg.NewShareGroupDescribeResponseGroup()
		e.GroupID, e.ErrorCode = g, code
		resp.Groups = append(resp.Groups, e)
	}
}

func failDescribeOffsets(req *kmsg.DescribeShareGroupOffsetsRequest, resp *kmsg.DescribeShareGroupOffsetsResponse, code int16) {
	for i := range req.Groups {
		e := kmsg.NewDescribeShareGroupOffsetsResponseGroup()
		e.GroupID, e.ErrorCode = req.Groups[i].GroupID, code
		resp.Groups = append(resp.Groups, e)
	}
}

func failAlterOffsets(_ *kmsg.AlterShareGroupOffsetsRequest, resp *kmsg.AlterShareGroupOffsetsResponse, code int16) {
	resp.ErrorCode = code
}

func failDeleteOffsets(_ *kmsg.DeleteShareGroupOffsetsRequest, resp *kmsg.DeleteShareGroupOffsetsResponse, code int16) {
	resp.ErrorCode = code
}
