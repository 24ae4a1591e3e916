package sim

import "github.com/twmb/franz-go/pkg/kmsg"

// codes lists all errors of an answer in its order.
func codes(msg kmsg.Response) (out []int16) {
	add := func(code int16) { out = append(out, code) }
	switch r := msg.(type) {
	case *kmsg.JoinGroupResponse:
		add(r.ErrorCode)
	case *kmsg.SyncGroupResponse:
		add(r.ErrorCode)
	case *kmsg.HeartbeatResponse:
		add(r.ErrorCode)
	case *kmsg.ConsumerGroupHeartbeatResponse:
		add(r.ErrorCode)
	case *kmsg.ListGroupsResponse:
		add(r.ErrorCode)
	case *kmsg.LeaveGroupResponse:
		add(r.ErrorCode)
		for _, m := range r.Members {
			add(m.ErrorCode)
		}
	case *kmsg.OffsetDeleteResponse:
		add(r.ErrorCode)
		for _, t := range r.Topics {
			for _, p := range t.Partitions {
				add(p.ErrorCode)
			}
		}
	case *kmsg.OffsetFetchResponse:
		for _, g := range r.Groups {
			add(g.ErrorCode)
		}
	case *kmsg.DescribeGroupsResponse:
		for _, g := range r.Groups {
			add(g.ErrorCode)
		}
	case *kmsg.DeleteGroupsResponse:
		for _, g := range r.Groups {
			add(g.ErrorCode)
		}
	case *kmsg.ConsumerGroupDescribeResponse:
		for _, g := range r.Groups {
			add(g.ErrorCode)
		}
	default:
		partitionCodes(msg, add)
	}
	return out
}

// partitionCodes is the same of answers that have errors of partitions alone.
func partitionCodes(msg kmsg.Response, add func(int16)) {
	switch r := msg.(type) {
	case *kmsg.OffsetCommitResponse:
		for _, t := range r.Topics {
			for _, p := range t.Partitions {
				add(p.ErrorCode)
			}
		}
	case *kmsg.TxnOffsetCommitResponse:
		for _, t := range r.Topics {
			for _, p := range t.Partitions {
				add(p.ErrorCode)
			}
		}
	case *kmsg.WriteTxnMarkersResponse:
		for _, m := range r.Markers {
			for _, t := range m.Topics {
				for _, p := range t.Partitions {
					add(p.ErrorCode)
				}
			}
		}
	}
}
