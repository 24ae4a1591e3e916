package group

import (
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/machine"
)

// fetchOffsets handles OffsetFetch of one group, in the form of version 8 and
// later: the handler asks each group's shard and puts older answers together.
// What is not known has offset -1, and is no error.
func (x shardStep) fetchOffsets(r *machine.Request, m *kmsg.OffsetFetchRequest) {
	resp := kmsg.NewPtrOffsetFetchResponse()
	resp.Version = m.Version
	for i := range m.Groups {
		resp.Groups = append(resp.Groups, x.fetchGroup(&m.Groups[i], m.RequireStable))
	}
	x.reply(r.ID, resp)
}

func (x shardStep) fetchGroup(req *kmsg.OffsetFetchRequestGroup, stable bool) kmsg.OffsetFetchResponseGroup {
	out := kmsg.NewOffsetFetchResponseGroup()
	out.Group = req.Group
	g := x.groups[req.Group]
	var b *base
	if g != nil {
		if err := g.checkFetch(req); err != nil {
			out.ErrorCode = err.Code
			return out
		}
		b = g.common()
	}
	if req.Topics == nil { // All that there are.
		if b != nil {
			for _, topic := range slices.Sorted(maps.Keys(b.offsets)) {
				out.Topics = append(out.Topics, fetchTopic(b, topic, b.offsets[topic].partitions(), stable))
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
func fetchTopic(b *base, topic string, partitions []int32, stable bool) kmsg.OffsetFetchResponseGroupTopic {
	out := kmsg.NewOffsetFetchResponseGroupTopic()
	out.Topic = topic
	for _, p := range partitions {
		e := kmsg.NewOffsetFetchResponseGroupTopicPartition()
		metadata := ""
		e.Partition, e.Offset, e.LeaderEpoch, e.Metadata = p, -1, -1, &metadata
		if b != nil {
			if stable && len(b.unstable[topicPartition{topic, p}]) > 0 {
				e.ErrorCode = kerr.UnstableOffsetCommit.Code
			} else if o, ok := b.offsets[topic].get(p); ok {
				e.Offset, e.LeaderEpoch, metadata = o.Offset, o.LeaderEpoch, o.Metadata
			}
		}
		out.Partitions = append(out.Partitions, e)
	}
	return out
}
