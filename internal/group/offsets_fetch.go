package group

import (
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/kind"
	"muster/internal/group/subscription"
	"muster/internal/machine"
)

// fetchOffsets handles OffsetFetch of one group, in the form of version 8 and
// later: the handler asks each group's shard and puts older answers together.
// What is not known has offset -1, and is no error.
func (x step) fetchOffsets(r *machine.Request, m *kmsg.OffsetFetchRequest) {
	resp := kmsg.NewPtrOffsetFetchResponse()
	resp.Version = m.Version
	for i := range m.Groups {
		resp.Groups = append(resp.Groups, x.fetchGroup(&m.Groups[i], m.RequireStable))
	}
	x.Reply(r.ID, resp)
}

func (x step) fetchGroup(req *kmsg.OffsetFetchRequestGroup, stable bool) kmsg.OffsetFetchResponseGroup {
	out := kmsg.NewOffsetFetchResponseGroup()
	out.Group = req.Group
	g := x.Groups[req.Group]
	var b *kind.Base
	if g != nil {
		if err := g.CheckFetch(req); err != nil {
			out.ErrorCode = err.Code
			return out
		}
		b = g.Common()
	}
	if req.Topics == nil { // All that there are.
		if b != nil {
			for _, topic := range slices.Sorted(maps.Keys(b.Offsets)) {
				out.Topics = append(out.Topics, fetchTopic(b, topic, b.Offsets[topic].Partitions(), stable))
			}
		}
		return out
	}
	for i := range req.Topics {
		t := fetchTopic(b, req.Topics[i].Topic, req.Topics[i].Partitions, stable)
		t.TopicID = req.Topics[i].TopicID
		out.Topics = append(out.Topics, t)
	}
	return out
}

// fetchTopic looks up offsets of one topic; b may be nil. Whoever wants them
// stable (KIP-447) is told to ask again while a transaction may still change one.
func fetchTopic(b *kind.Base, topic string, partitions []int32, stable bool) kmsg.OffsetFetchResponseGroupTopic {
	out := kmsg.NewOffsetFetchResponseGroupTopic()
	out.Topic = topic
	for _, p := range partitions {
		e := kmsg.NewOffsetFetchResponseGroupTopicPartition()
		metadata := ""
		e.Partition, e.Offset, e.LeaderEpoch, e.Metadata = p, -1, -1, &metadata
		if b != nil {
			if stable && len(b.Unstable[subscription.TopicPartition{Topic: topic, Partition: p}]) > 0 {
				e.ErrorCode = kerr.UnstableOffsetCommit.Code
			} else if o, ok := b.Offsets[topic].Get(p); ok {
				e.Offset, e.LeaderEpoch, metadata = o.Offset, o.LeaderEpoch, o.Metadata
			}
		}
		out.Partitions = append(out.Partitions, e)
	}
	return out
}
