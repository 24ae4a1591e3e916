package group

import (
	"math"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/schema"
	"muster/internal/journal"
	"muster/internal/machine"
)

// deleteOffsets handles OffsetDelete: offsets of topics that nobody in the group
// subscribes to.
func (x shardStep) deleteOffsets(r *machine.Request, m *kmsg.OffsetDeleteRequest) {
	resp := kmsg.NewPtrOffsetDeleteResponse()
	resp.Version = m.Version
	subscribed, err := x.checkOffsetDelete(m)
	if err != nil {
		resp.ErrorCode = err.Code
		x.reply(r.ID, resp)
		return
	}
	g := x.groups[m.Group]
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
	x.noteOffsets(g, journal.KindOffsetsDeleted, gone, journal.CauseRequest, by(r))
	x.reply(r.ID, resp)
}

func (x shardStep) checkOffsetDelete(m *kmsg.OffsetDeleteRequest) (func(string) bool, *kerr.Error) {
	if m.Group == "" {
		return nil, kerr.InvalidGroupID
	}
	g := x.groups[m.Group]
	if g == nil {
		return nil, kerr.GroupIDNotFound
	}
	return g.inUse()
}

// keepEmpty keeps a simple group, whose last offset is about to go, until the
// next sweep, as Kafka does.
func (x shardStep) keepEmpty(g Group, topic string, partition int32) {
	b := g.common()
	left := len(b.unstable)
	if len(b.unstable[topicPartition{topic, partition}]) > 0 {
		left--
	}
	_, committed := b.offsets[topic].get(partition)
	switch {
	case committed && len(b.offsets) == 1:
		left += b.offsets[topic].len() - 1
	default:
		left += len(b.offsets)
	}
	if g.isGone() && left == 0 {
		x.write(emptyGroup(b.id))
	}
}

// forgetOffset removes a committed offset if there is one, and counts it. Those
// that wait for their transactions go with it.
func (x shardStep) forgetOffset(g Group, topic string, partition int32, gone *offsetCount) {
	b := g.common()
	_, committed := b.offsets[topic].get(partition)
	if committed || len(b.unstable[topicPartition{topic, partition}]) > 0 {
		x.write(&schema.OffsetRecord{Group: b.id, Topic: topic, Partition: partition})
	}
	if committed {
		gone.add(topic, 0)
	}
}

// topicsGone removes the offsets of topics that are gone. Members learn of it by
// themselves, and their leader joins again. It looks at every group, which is why
// it is not done for topics that are merely new.
func (x shardStep) topicsGone(topics []string) {
	if len(topics) == 0 {
		return
	}
	for _, id := range x.groupIDs() {
		g := x.groups[id]
		var gone offsetCount
		waiting := g.common().waiting()
		for _, topic := range topics {
			x.forgetTopic(g, topic, waiting, &gone)
		}
		x.noteOffsets(g, journal.KindOffsetsDeleted, gone, journal.CauseTopics, nil)
	}
}

// forgetDeleted removes the offsets of topics that were deleted while nobody
// coordinated the group.
func (x shardStep) forgetDeleted(g Group) {
	var gone offsetCount
	waiting := g.common().waiting()
	for _, topic := range g.common().topics() {
		x.forgetTopic(g, topic, waiting, &gone)
	}
	x.noteOffsets(g, journal.KindOffsetsDeleted, gone, journal.CauseTopics, nil)
}

// forgetTopic removes the offsets of a topic if it does not exist any more, or is
// another of the same name: its offsets mean nothing there. waiting is what waits for
// transactions, of all topics, or did when it was listed.
func (x shardStep) forgetTopic(g Group, topic string, waiting []topicPartition, gone *offsetCount) {
	b := g.common()
	if x.image == nil {
		return
	}
	now := x.image.Topic(topic)
	if b.offsets[topic].mayBeStale(now) {
		for _, p := range b.offsets[topic].partitions() {
			if o, _ := b.offsets[topic].get(p); isStale(&o, now) {
				x.forgetOffset(g, topic, p, gone)
			}
		}
	}
	first, _ := slices.BinarySearchFunc(waiting, topicPartition{topic, math.MinInt32}, comparePartitions)
	for _, tp := range waiting[first:] {
		if tp.topic != topic {
			break
		}
		if list := b.unstable[tp]; len(list) > 0 && isStale(&list[0].value, now) {
			x.forgetOffset(g, topic, tp.partition, gone)
		}
	}
}
