package group

import (
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// deleteOffsets handles OffsetDelete: offsets of topics that nobody in the group
// subscribes to.
func (x *step) deleteOffsets(r *Request, m *kmsg.OffsetDeleteRequest) {
	resp := kmsg.NewPtrOffsetDeleteResponse()
	resp.Version = m.Version
	subscribed, err := x.checkOffsetDelete(m)
	if err != nil {
		resp.ErrorCode = err.Code
		x.reply(r.ID, resp)
		return
	}
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
				x.forgetOffset(m.Group, t.Topic, p.Partition)
			}
			out.Partitions = append(out.Partitions, e)
		}
		resp.Topics = append(resp.Topics, out)
	}
	x.reply(r.ID, resp)
}

func (x *step) checkOffsetDelete(m *kmsg.OffsetDeleteRequest) (func(string) bool, *kerr.Error) {
	if m.Group == "" {
		return nil, kerr.InvalidGroupID
	}
	g := x.groups[m.Group]
	switch {
	case g == nil:
		return nil, kerr.GroupIDNotFound
	case g.state == Empty:
		return func(string) bool { return false }, nil
	case g.protocolType != consumerType:
		return nil, kerr.NonEmptyGroup
	}
	return g.subscribes(), nil
}

// forgetOffset removes a committed offset if there is one.
func (x *step) forgetOffset(group, topic string, partition int32) {
	g := x.groups[group]
	if g == nil {
		return
	}
	if _, ok := g.offsets[topic][partition]; ok {
		x.write(Record{Group: group, Topic: topic, Partition: partition})
	}
	if g.state == Dead { // A simple group, which was nothing but its offsets.
		x.note(g, KindDeleted)
	}
}

// topicsDeleted removes the offsets of topics that are gone. Members learn of it
// by themselves, and their leader joins again.
func (x *step) topicsDeleted(topics []string) {
	for _, id := range x.groupIDs() {
		for _, topic := range topics {
			g := x.groups[id]
			if g == nil {
				break
			}
			for _, p := range slices.Sorted(maps.Keys(g.offsets[topic])) {
				x.forgetOffset(id, topic, p)
			}
		}
	}
}

// sweep removes expired offsets, and groups that are empty of members and
// offsets (KIP-211).
func (x *step) sweep() {
	for _, id := range x.groupIDs() {
		x.expireOffsets(x.groups[id])
		if g := x.groups[id]; g != nil && g.state == Empty && len(g.offsets) == 0 && len(g.pending) == 0 {
			x.write(Record{Group: id})
			x.note(g, KindDeleted)
		}
	}
	x.arm(TimerKey{Kind: TimerSweep}, x.now.Add(x.cfg.SweepInterval))
}

// expireOffsets removes what of a group has expired. What counts depends on who
// might still need it.
func (x *step) expireOffsets(g *group) {
	subscribed := func(string) bool { return false }
	empty := int64(-1)
	switch {
	case g.state == Empty && g.protocolType != "":
		empty = g.hard.CurrentStateTimestamp // From when the last member left, if that is known.
	case g.state == Empty: // A simple group: from each commit.
	case g.state == Stable && g.protocolType == consumerType:
		subscribed = g.subscribes()
	default:
		return
	}
	id := g.id
	for _, topic := range slices.Sorted(maps.Keys(g.offsets)) {
		if subscribed(topic) {
			continue
		}
		parts := g.offsets[topic]
		for _, p := range slices.Sorted(maps.Keys(parts)) {
			from := parts[p].commit
			if empty >= 0 {
				from = empty
			}
			expire := from + x.cfg.OffsetsRetention.Milliseconds()
			if parts[p].expire != -1 {
				expire = parts[p].expire
			}
			if x.now.UnixMilli() >= expire {
				x.forgetOffset(id, topic, p)
			}
		}
	}
}
