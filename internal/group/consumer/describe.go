package consumer

import (
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/kind"
	"muster/internal/group/modern"
	"muster/internal/journal"
	"muster/internal/machine"
	"muster/internal/metadata"
)

// describe handles ConsumerGroupDescribe.
func describe(x *kind.Step, r *machine.Request, m *kmsg.ConsumerGroupDescribeRequest) {
	resp := kmsg.NewPtrConsumerGroupDescribeResponse()
	resp.Version = m.Version
	for _, id := range m.Groups {
		resp.Groups = append(resp.Groups, describeGroup(x, id))
	}
	x.Reply(r.ID, resp)
}

func describeGroup(x *kind.Step, id string) kmsg.ConsumerGroupDescribeResponseGroup {
	out := kmsg.NewConsumerGroupDescribeResponseGroup()
	out.Group = id
	fail := func(err *kerr.Error, reason string) kmsg.ConsumerGroupDescribeResponseGroup {
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
		return fail(kerr.GroupIDNotFound, "Group "+id+" is not a consumer group.")
	}
	out.State, out.Epoch, out.AssignmentEpoch, out.AssignorName = g.StateName(), g.Epoch, g.TargetEpoch, g.Assignor(x)
	for _, mem := range g.Members {
		if mem.Metadata != nil {
			out.Members = append(out.Members, g.describeMember(x, mem, x.Cfg.Consumer.Of(id).Session))
		}
	}
	return out
}

// The types of members in ConsumerGroupDescribe.
const (
	memberTypeClassic  = 0
	memberTypeConsumer = 1
)

func (g *Group) describeMember(x *kind.Step, mem *Member, session time.Duration) kmsg.ConsumerGroupDescribeResponseGroupMember {
	out := kmsg.NewConsumerGroupDescribeResponseGroupMember()
	meta, now := mem.Metadata, mem.Now()
	out.MemberID, out.InstanceID, out.RackID = mem.ID, meta.Instance, meta.Rack
	out.MemberEpoch, out.ClientID, out.ClientHost = now.Epoch, meta.ClientID, meta.Host
	out.SubscribedTopics, out.SubscribedTopicRegex = meta.Topics, meta.Regex
	if out.MemberType = memberTypeConsumer; meta.Classic != nil {
		out.MemberType = memberTypeClassic
	}
	var held describedParts
	for _, p := range now.Assigned {
		held.add(x.Image, p.Part)
	}
	out.Assignment.TopicPartitions = held.list
	var target describedParts
	for _, p := range mem.Target {
		target.add(x.Image, p)
	}
	out.TargetAssignment.TopicPartitions = target.list
	g.Details(x, mem, session).Set(&out.UnknownTags)
	return out
}

// describedParts is partitions with the names of their topics, of those that exist.
type describedParts struct {
	list []kmsg.AssignmentTopicPartition
	last metadata.TopicID
}

func (d *describedParts) add(image *metadata.Image, p Partition) {
	if len(d.list) == 0 || d.last != p.Topic {
		if image == nil || image.TopicByID(p.Topic) == nil {
			return
		}
		t := kmsg.NewAssignmentTopicPartition()
		t.TopicID, t.Topic = p.Topic, image.TopicByID(p.Topic).Name
		d.list, d.last = append(d.list, t), p.Topic
	}
	t := &d.list[len(d.list)-1]
	t.Partitions = append(t.Partitions, p.Number)
}

// Details is what Kafka's answer has no place for.
func (g *Group) Details(x *kind.Step, mem *Member, session time.Duration) *journal.MemberStatus {
	s, now := &journal.MemberStatus{Assignor: OrEmpty(mem.Metadata.Assignor)}, mem.Now()
	if r := g.Regexes[mem.pattern()]; r != nil {
		n := len(r.Topics)
		s.Matches = &n
	}
	switch now.State {
	case modern.Unrevoked:
		var parts []Partition
		for _, p := range now.Pending {
			parts = append(parts, p.Part)
		}
		d := &differences{image: x.Image}
		s.Revoking, s.Since, s.Until = d.byTopic(parts), mem.Since, mem.RevokeBy
		s.Heard, s.Session = mem.Deadline.Add(-session), mem.Deadline
	case modern.Unreleased:
		s.Waits, s.Since = true, mem.Since
	}
	return s
}
