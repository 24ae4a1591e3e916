package streams

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/kind"
)

// APIs is the requests of the streams protocol.
var APIs = []kind.API{kind.Serves(heartbeat, failHeartbeat), kind.Serves(describe, failDescribe)}

func failHeartbeat(_ *kmsg.StreamsGroupHeartbeatRequest, resp *kmsg.StreamsGroupHeartbeatResponse, code int16) {
	resp.ErrorCode = code
}

func failDescribe(req *kmsg.StreamsGroupDescribeRequest, resp *kmsg.StreamsGroupDescribeResponse, code int16) {
	for _, g := range req.Groups {
		e := kmsg.NewStreamsGroupDescribeResponseGroup()
		e.Group, e.ErrorCode = g, code
		resp.Groups = append(resp.Groups, e)
	}
}
