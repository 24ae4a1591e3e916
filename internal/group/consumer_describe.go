package group

import (
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/journal"
	"muster/internal/machine"
	"muster/internal/metadata"
)

// consumerDescribe handles ConsumerGroupDescribe.
func consumerDescribe(x *step, r *machine.Request, m *kmsg.ConsumerGroupDescribeRequest) {
	resp := kmsg.NewPtrConsumerGroupDescribeResponse()
	resp.Version = m.Version
	for _, id := range m.Groups {
		resp.Groups = append(resp.Groups, describeConsumers(x, id))
	}
	x.reply(r.ID, resp)
}

func describeConsumers(x *step, id string) kmsg.ConsumerGroupDescribeResponseGroup {
	out := kmsg.NewConsumerGroupDescribeResponseGroup()
	out.Group = id
	fail := func(err *kerr.Error, reason string) kmsg.ConsumerGroupDescribeResponseGroup {
		out.ErrorCode, out.ErrorMessage = err.Code, &reason
		return out
	}
	g, ok := x.groups[id].(*consumerGroup)
	switch {
	case id == "":
		return fail(kerr.InvalidGroupID, "The group id is empty.")
	case x.groups[id] == nil:
		return fail(kerr.GroupIDNotFound, "Group "+id+" not found.")
	case !ok:
		return fail(kerr.GroupIDNotFound, "Group "+id+" is not a consumer group.")
	}
	out.State, out.Epoch, out.AssignmentEpoch, out.AssignorName = g.stateName(), g.epoch, g.targetEpoch, g.chosenAssignor(x)
	for _, mem := range g.members {
		if mem.says != nil {
			out.Members = append(out.Members, g.describeConsumer(x, mem, x.cfg.Consumer.of(id).Session))
		}
	}
	return out
}

// The types of members in ConsumerGroupDescribe.
const (
	memberTypeClassic  = 0
	memberTypeConsumer = 1
)

func (g *consumerGroup) describeConsumer(x *step, mem *consumerMember, session time.Duration) kmsg.ConsumerGroupDescribeResponseGroupMember {
	out := kmsg.NewConsumerGroupDescribeResponseGroupMember()
	says, now := mem.says, mem.now()
	out.MemberID, out.InstanceID, out.RackID = mem.id, says.Instance, says.Rack
	out.MemberEpoch, out.ClientID, out.ClientHost = now.epoch, says.ClientID, says.Host
	out.SubscribedTopics, out.SubscribedTopicRegex = says.Topics, says.Regex
	if out.MemberType = memberTypeConsumer; says.Classic != nil {
		out.MemberType = memberTypeClassic
	}
	var held describedParts
	for _, p := range now.assigned {
		held.add(x.image, p.part)
	}
	out.Assignment.TopicPartitions = held.list
	var target describedParts
	for _, p := range mem.target {
		target.add(x.image, p)
	}
	out.TargetAssignment.TopicPartitions = target.list
	g.standing(x, mem, session).Set(&out.UnknownTags)
	return out
}

// describedParts is partitions with the names of their topics, of those that exist.
type describedParts struct {
	list []kmsg.AssignmentTopicPartition
	last metadata.TopicID
}

func (d *describedParts) add(image *metadata.Image, p part) {
	if len(d.list) == 0 || d.last != p.topic {
		if image == nil || image.TopicByID(p.topic) == nil {
			return
		}
		t := kmsg.NewAssignmentTopicPartition()
		t.TopicID, t.Topic = p.topic, image.TopicByID(p.topic).Name
		d.list, d.last = append(d.list, t), p.topic
	}
	t := &d.list[len(d.list)-1]
	t.Partitions = append(t.Partitions, p.n)
}

// standing is what Kafka's answer has no place for.
func (g *consumerGroup) standing(x *step, mem *consumerMember, session time.Duration) *journal.Standing {
	s, now := &journal.Standing{Assignor: orEmpty(mem.says.Assignor)}, mem.now()
	if r := g.regexes[mem.pattern()]; r != nil {
		n := len(r.topics)
		s.Matches = &n
	}
	switch now.state {
	case memberUnrevoked:
		var parts []part
		for _, p := range now.pending {
			parts = append(parts, p.part)
		}
		d := &differences{image: x.image}
		s.Revoking, s.Since, s.Until = d.told(parts), mem.told, mem.revokeBy
		s.Heard, s.Session = mem.deadline.Add(-session), mem.deadline
	case memberUnreleased:
		s.Waits, s.Since = true, mem.told
	}
	return s
}
