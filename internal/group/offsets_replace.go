package group

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/schema"
	"muster/internal/machine"
)

// replaces says whether the broker sent an OffsetCommit to put offsets in the place of others.
func replaces(m *kmsg.OffsetCommitRequest) bool {
	return len(m.Topics) > 0 && len(m.Topics[0].Partitions) > 0 &&
		machine.ReplacesOf(&m.Topics[0].Partitions[0].UnknownTags) != machine.NoReplaces
}

// replaceOne puts an offset in the place of another that means the same record, if that is what the group has
// committed. The leader epoch of that one says nothing of the new one. It is no commit otherwise: it does not put off
// when the offset expires, and the journal does not tell of it.
func (x step) replaceOne(group, topic string, p *kmsg.OffsetCommitRequestTopicPartition) {
	g := x.Groups[group]
	if g == nil {
		return
	}
	o, ok := g.Common().Offsets[topic].Get(p.Partition)
	if !ok || o.Offset != int64(machine.ReplacesOf(&p.UnknownTags)) {
		return
	}
	o.Offset, o.LeaderEpoch = p.Offset, -1
	x.Write(&schema.OffsetRecord{Group: group, Topic: topic, Partition: p.Partition, Value: &o})
}
