package group

import (
	"math"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/classic"
	"muster/internal/group/kind"
	"muster/internal/group/schema"
	"muster/internal/group/subscription"
	"muster/internal/journal"
	"muster/internal/machine"
)

// deleteOffsets handles OffsetDelete: offsets of topics that no one in the group
// subscribes to.
func (x step) deleteOffsets(r *machine.Request, m *kmsg.OffsetDeleteRequest) {
	resp := kmsg.NewPtrOffsetDeleteResponse()
	resp.Version = m.Version
	subscribed, err := x.checkOffsetDelete(m)
	if err != nil {
		resp.ErrorCode = err.Code
		x.Reply(r.ID, resp)
		return
	}
	g := x.Groups[m.Group]
	var gone offsetCount
	for i := range m.Topics {
		t := &m.Topics[i]
		out := kmsg.NewOffsetDeleteResponseTopic()
		out.Topic = t.Topic
		for _, p := range t.Partitions {
			e := kmsg.NewOffsetDeleteResponseTopicPartition()
			e.Partition = p.Partition
			if subscribed(t.Topic) {
				e.ErrorCode = kerr.GroupSubscribedToTopic.Code
			} else {
				x.keepEmpty(g, t.Topic, p.Partition)
				x.forgetOffset(g, t.Topic, p.Partition, &gone)
			}
			out.Partitions = append(out.Partitions, e)
		}
		resp.Topics = append(resp.Topics, out)
	}
	x.noteOffsets(g, journal.KindOffsetsDeleted, gone, journal.CauseRequest, kind.By(r))
	x.Reply(r.ID, resp)
}

func (x step) checkOffsetDelete(m *kmsg.OffsetDeleteRequest) (func(string) bool, *kerr.Error) {
	if m.Group == "" {
		return nil, kerr.InvalidGroupID
	}
	g := x.Groups[m.Group]
	if g == nil {
		return nil, kerr.GroupIDNotFound
	}
	return g.InUse()
}

// keepEmpty keeps a simple group, whose last offset is about to go, until the
// next sweep, as Kafka does.
func (x step) keepEmpty(g kind.Group, topic string, partition int32) {
	b := g.Common()
	left := len(b.Unstable)
	if len(b.Unstable[subscription.TopicPartition{Topic: topic, Partition: partition}]) > 0 {
		left--
	}
	_, committed := b.Offsets[topic].Get(partition)
	switch {
	case committed && len(b.Offsets) == 1:
		left += b.Offsets[topic].Len() - 1
	default:
		left += len(b.Offsets)
	}
	if g.IsGone() && left == 0 {
		x.Write(classic.EmptyGroup(b.ID))
	}
}

// forgetOffset removes a committed offset if there is one, and counts it. Those
// that wait for their transactions go with it.
func (x step) forgetOffset(g kind.Group, topic string, partition int32, gone *offsetCount) {
	b := g.Common()
	_, committed := b.Offsets[topic].Get(partition)
	if committed || len(b.Unstable[subscription.TopicPartition{Topic: topic, Partition: partition}]) > 0 {
		x.Write(&schema.OffsetRecord{Group: b.ID, Topic: topic, Partition: partition})
	}
	if committed {
		gone.add(topic, 0)
	}
}

// topicsGone removes the offsets of topics that are gone. Members learn of it by
// themselves, and their leader joins again. It looks at every group, which is why
// it is not done for topics that are merely new.
func (x step) topicsGone(topics []string) {
	if len(topics) == 0 {
		return
	}
	for _, id := range x.GroupIDs() {
		g := x.Groups[id]
		var gone offsetCount
		waiting := g.Common().Waiting()
		for _, topic := range topics {
			x.forgetTopic(g, topic, waiting, &gone)
		}
		x.noteOffsets(g, journal.KindOffsetsDeleted, gone, journal.CauseTopics, nil)
	}
}

// forgetDeleted removes the offsets of topics that were deleted while no one
// coordinated the group.
func (x step) forgetDeleted(g kind.Group) {
	var gone offsetCount
	waiting := g.Common().Waiting()
	for _, topic := range g.Common().Topics() {
		x.forgetTopic(g, topic, waiting, &gone)
	}
	x.noteOffsets(g, journal.KindOffsetsDeleted, gone, journal.CauseTopics, nil)
}

// forgetTopic removes the offsets of a topic if it does not exist any more, or is
// another of the same name: its offsets mean nothing there. waiting is what waits for
// transactions, of all topics, or did when it was listed.
func (x step) forgetTopic(g kind.Group, topic string, waiting []subscription.TopicPartition, gone *offsetCount) {
	b := g.Common()
	if x.Image == nil {
		return
	}
	now := x.Image.Topic(topic)
	if b.Offsets[topic].MayBeStale(now) {
		for _, p := range b.Offsets[topic].Partitions() {
			if o, _ := b.Offsets[topic].Get(p); isStale(&o, now) {
				x.forgetOffset(g, topic, p, gone)
			}
		}
	}
	first, _ := slices.BinarySearchFunc(waiting, subscription.TopicPartition{Topic: topic, Partition: math.MinInt32}, kind.ComparePartitions)
	for _, tp := range waiting[first:] {
		if tp.Topic != topic {
			break
		}
		if list := b.Unstable[tp]; len(list) > 0 && isStale(&list[0].Value, now) {
			x.forgetOffset(g, topic, tp.Partition, gone)
		}
	}
}
