package state

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// failed returns the answer that tells a broker of an error that is not about its request but
// about the coordinator; nil makes it a success.
func failed(req kmsg.Request, err *kerr.Error) kmsg.Response {
	x := &step{Shard: &Shard{}}
	c := code(err)
	switch m := req.(type) {
	case *kmsg.InitializeShareGroupStateRequest:
		resp := x.initialize(m).(*kmsg.InitializeShareGroupStateResponse)
		for _, t := range resp.Topics {
			for i := range t.Partitions {
				t.Partitions[i].ErrorCode = c
			}
		}
		return resp
	case *kmsg.ReadShareGroupStateRequest:
		resp := x.read(m).(*kmsg.ReadShareGroupStateResponse)
		for _, t := range resp.Topics {
			for i := range t.Partitions {
				t.Partitions[i].ErrorCode = c
			}
		}
		return resp
	case *kmsg.WriteShareGroupStateRequest:
		resp := x.writeState(m).(*kmsg.WriteShareGroupStateResponse)
		for _, t := range resp.Topics {
			for i := range t.Partitions {
				t.Partitions[i].ErrorCode = c
			}
		}
		return resp
	case *kmsg.DeleteShareGroupStateRequest:
		resp := x.remove(m).(*kmsg.DeleteShareGroupStateResponse)
		for _, t := range resp.Topics {
			for i := range t.Partitions {
				t.Partitions[i].ErrorCode = c
			}
		}
		return resp
	case *kmsg.ReadShareGroupStateSummaryRequest:
		resp := x.summary(m).(*kmsg.ReadShareGroupStateSummaryResponse)
		for _, t := range resp.Topics {
			for i := range t.Partitions {
				t.Partitions[i].ErrorCode = c
			}
		}
		return resp
	}
	return req.ResponseKind()
}
