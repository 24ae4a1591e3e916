package share

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/kind"
	"muster/internal/group/modern"
	"muster/internal/machine"
	"muster/internal/metadata"
)

// describe handles ShareGroupDescribe.
func describe(x *kind.Step, r *machine.Request, m *kmsg.ShareGroupDescribeRequest) {
	resp := kmsg.NewPtrShareGroupDescribeResponse()
	resp.Version = m.Version
	for _, id := range m.GroupIDs {
		resp.Groups = append(resp.Groups, describeGroup(x, id))
	}
	x.Reply(r.ID, resp)
}

func describeGroup(x *kind.Step, id string) kmsg.ShareGroupDescribeResponseGroup {
	out := kmsg.NewShareGroupDescribeResponseGroup()
	out.GroupID = id
	fail := func(err *kerr.Error, reason string) kmsg.ShareGroupDescribeResponseGroup {
		out.ErrorCode, out.ErrorMessage = err.Code, &reason
		return out
	}
	g, ok := x.Groups[id].(*Group)
	switch {
	case id == "":
		return fail(kerr.InvalidGroupID, "The group id is empty.")
	case x.Groups[id] == nil:
		return fail(kerr.GroupIDNotFound, "Group "+id+" not found.")
	case !ok:
		return fail(kerr.GroupIDNotFound, "Group "+id+" is not a share group.")
	}
	out.GroupState, out.GroupEpoch, out.AssignmentEpoch, out.Assignor = g.StateName(), g.Epoch, g.TargetEpoch, assignorSimple
	for _, mem := range g.Members {
		if mem.Metadata != nil {
			out.Members = append(out.Members, describeMember(x.Image, mem))
		}
	}
	return out
}

func describeMember(image *metadata.Image, mem *Member) kmsg.ShareGroupDescribeResponseGroupMember {
	out := kmsg.NewShareGroupDescribeResponseGroupMember()
	out.MemberID, out.RackID, out.MemberEpoch = mem.ID, mem.Metadata.Rack, mem.Now().Epoch
	out.ClientID, out.ClientHost, out.SubscribedTopicNames = mem.Metadata.ClientID, mem.Metadata.Host, mem.Metadata.Topics
	for _, t := range modern.TopicsOf(modern.PartsHeld(mem.Current.AssignedParts())) {
		if image == nil || image.TopicByID(t.Topic) == nil {
			continue
		}
		e := kmsg.NewShareGroupDescribeResponseGroupMemberAssignmentTopicPartition()
		e.TopicID, e.Topic, e.Partitions = t.Topic, image.TopicByID(t.Topic).Name, t.Partitions
		out.Assignment.TopicPartitions = append(out.Assignment.TopicPartitions, e)
	}
	return out
}
