package groupview

import (
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func askShares(names []string) kmsg.Request {
	req := kmsg.NewPtrShareGroupDescribeRequest()
	req.Version, req.GroupIDs = 1, names
	return req
}

func readShares(resp kmsg.Response) (out []Answer) {
	r, ok := resp.(*kmsg.ShareGroupDescribeResponse)
	if !ok {
		return nil
	}
	for i := range r.Groups {
		g := &r.Groups[i]
		a := Answer{Name: g.GroupID, Err: kerr.ErrorForCode(g.ErrorCode)}
		if a.Err == nil {
			a.Group = FromShare(g)
		}
		out = append(out, a)
	}
	return out
}

// FromShare is a share group as ShareGroupDescribe tells of it, but for where it is. A partition
// may have several members there.
func FromShare(g *kmsg.ShareGroupDescribeResponseGroup) Group {
	out := Group{
		Type: TypeShare, State: g.GroupState, ProtocolType: TypeShare, Assignor: g.Assignor, Epoch: &g.GroupEpoch, TargetEpoch: &g.AssignmentEpoch,
	}
	for i := range g.Members {
		m := &g.Members[i]
		member := Member{
			ID: m.MemberID, ClientID: m.ClientID, Host: strings.TrimPrefix(m.ClientHost, "/"), Topics: m.SubscribedTopicNames, Epoch: &m.MemberEpoch, Assigned: []Assigned{},
		}
		for _, t := range m.Assignment.TopicPartitions {
			member.Assigned = append(member.Assigned, Assigned{Topic: t.Topic, Partitions: slices.Sorted(slices.Values(t.Partitions))})
		}
		sortAssigned(member.Assigned)
		out.Members = append(out.Members, member)
	}
	sortMembers(out.Members)
	return out
}
