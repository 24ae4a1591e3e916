package handler

import (
	"strconv"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/audit"
)

func deletedGroups(_ *call, resp kmsg.Response) []change {
	var out []audit.Resource
	for _, g := range resp.(*kmsg.DeleteGroupsResponse).Groups {
		if g.ErrorCode == 0 {
			out = append(out, audit.Resource{Type: audit.TypeGroup, Name: g.Group})
		}
	}
	return []change{{audit.GroupDeleted, out}}
}

// removedMembers tells of members that a person has removed. Whoever leaves by the Kafka
// protocol is most often the member itself, as all do when they end.
func removedMembers(c *call, resp kmsg.Response) []change {
	answer := resp.(*kmsg.LeaveGroupResponse)
	if c.origin.Via == "" || answer.ErrorCode != 0 {
		return nil
	}
	var who some
	for _, m := range answer.Members {
		switch {
		case m.ErrorCode != 0:
		case m.InstanceID != nil:
			who.addf("instance %s", *m.InstanceID)
		default:
			who.addf("member %s", m.MemberID)
		}
	}
	return ofGroup(audit.MemberRemoved, c.req.(*kmsg.LeaveGroupRequest).Group, &who)
}

func deletedOffsets(c *call, resp kmsg.Response) []change {
	answer := resp.(*kmsg.OffsetDeleteResponse)
	if answer.ErrorCode != 0 {
		return nil
	}
	var parts some
	for _, t := range answer.Topics {
		for _, p := range t.Partitions {
			if p.ErrorCode == 0 {
				parts.addf("%s-%d", t.Topic, p.Partition)
			}
		}
	}
	return ofGroup(audit.OffsetsDeleted, c.req.(*kmsg.OffsetDeleteRequest).Group, &parts)
}

// committedByNobody tells of offsets that someone has set who is no member: a person
// who resets a group, or a consumer that chooses its partitions itself.
func committedByNobody(c *call, resp kmsg.Response) []change {
	req := c.req.(*kmsg.OffsetCommitRequest)
	if req.MemberID != "" || req.Generation >= 0 {
		return nil
	}
	refused := map[string]bool{} // by name or id, and partition
	key := func(topic string, id [16]byte, partition int32) string {
		if req.Version >= 10 {
			topic = string(id[:])
		}
		return topic + "/" + strconv.Itoa(int(partition))
	}
	for _, t := range resp.(*kmsg.OffsetCommitResponse).Topics {
		for _, p := range t.Partitions {
			refused[key(t.Topic, t.TopicID, p.Partition)] = p.ErrorCode != 0
		}
	}
	var parts some
	for _, t := range req.Topics { // Those that exist, by name.
		for _, p := range t.Partitions {
			if no, known := refused[key(t.Topic, t.TopicID, p.Partition)]; known && !no {
				parts.addf("%s-%d=%d", t.Topic, p.Partition, p.Offset)
			}
		}
	}
	return ofGroup(audit.OffsetsSet, req.Group, &parts)
}

func ofGroup(kind audit.Kind, group string, parts *some) []change {
	if parts.n == 0 {
		return nil
	}
	return []change{{kind, []audit.Resource{{Type: audit.TypeGroup, Name: group, Detail: parts.String()}}}}
}

// endedTransactions tells of transactions that an operator has ended. Brokers, which end
// them all the time, are answered elsewhere (answerLater).
func endedTransactions(c *call, resp kmsg.Response) []change {
	var out []audit.Resource
	markers := c.req.(*kmsg.WriteTxnMarkersRequest).Markers
	for i, m := range resp.(*kmsg.WriteTxnMarkersResponse).Markers {
		var parts some
		for _, t := range m.Topics {
			for _, p := range t.Partitions {
				if p.ErrorCode == 0 {
					parts.addf("%s-%d", t.Topic, p.Partition)
				}
			}
		}
		if parts.n == 0 {
			continue
		}
		how := "aborted in "
		if i < len(markers) && markers[i].Committed {
			how = "committed in "
		}
		out = append(out, audit.Resource{Type: audit.TypeProducer, Name: strconv.FormatInt(m.ProducerID, 10), Detail: how + parts.String()})
	}
	if len(out) == 0 {
		return nil
	}
	return []change{{audit.TransactionEnded, out}}
}
