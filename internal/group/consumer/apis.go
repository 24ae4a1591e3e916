package consumer

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/kind"
)

// APIs is the requests of the consumer protocol.
var APIs = []kind.API{joins(kind.Serves(heartbeat, failHeartbeat)), kind.Serves(describe, failDescribe)}

// joins says that a heartbeat without a member id is given one.
func joins(a kind.API) kind.API {
	a.Random = func(req kmsg.Request) bool { return blank(req.(*kmsg.ConsumerGroupHeartbeatRequest).MemberID) }
	return a
}

func failHeartbeat(_ *kmsg.ConsumerGroupHeartbeatRequest, resp *kmsg.ConsumerGroupHeartbeatResponse, code int16) {
	resp.ErrorCode = code
}

func failDescribe(req *kmsg.ConsumerGroupDescribeRequest, resp *kmsg.ConsumerGroupDescribeResponse, code int16) {
	for _, g := range req.Groups {
		e := kmsg.NewConsumerGroupDescribeResponseGroup()
		e.Group, e.ErrorCode = g, code
		resp.Groups = append(resp.Groups, e)
	}
}
