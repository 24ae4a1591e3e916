package cluster

import (
	"slices"

	"muster/internal/metadata"
	"muster/internal/record"
)

// assign makes the leader of every partition the broker that rendezvous hashing
// names, and returns the records of the topics that changed. A leader epoch
// rises with each change, and for the partitions of a broker that was started
// again. Without brokers everything stays: there is nobody to lead.
func assign(edit *metadata.Edit, restarted int32) []record.Record {
	brokers := edit.Image().Brokers
	if len(brokers) == 0 {
		return nil
	}
	var recs []record.Record
	for _, t := range edit.Image().Topics() {
		next := slices.Clone(t.Partitions)
		for i := range next {
			leader := leaderOf(brokers, t.Name, i)
			if leader != next[i].Leader || leader == restarted {
				next[i] = metadata.Partition{Leader: leader, LeaderEpoch: next[i].LeaderEpoch + 1}
			}
		}
		if !slices.Equal(next, t.Partitions) {
			changed := *t
			changed.Partitions = next
			edit.PutTopic(changed)
			recs = append(recs, topicRecord(changed, true))
		}
	}
	return recs
}

// leaderOf names the leader of a partition: the broker with the highest hash of
// its id and the partition, so that a broker that comes or goes moves no
// partitions but its own. The journal's partitions go where their groups are.
func leaderOf(brokers []metadata.Broker, topic string, partition int) int32 {
	if topic == metadata.JournalTopic {
		topic = metadata.OffsetsTopic
	}
	best, bestScore := int32(metadata.NoBroker), uint64(0)
	for i := range brokers {
		if score := rendezvous(brokers[i].ID, topic, partition); best == metadata.NoBroker || score > bestScore {
			best, bestScore = brokers[i].ID, score
		}
	}
	return best
}

// rendezvous hashes by FNV-1a, finished with a mix that spreads small numbers
// over all bits.
func rendezvous(broker int32, topic string, partition int) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(topic) {
		h = (h ^ uint64(topic[i])) * 1099511628211
	}
	h = (h ^ uint64(uint32(partition))) * 1099511628211
	h ^= uint64(uint32(broker)) * 0x9e3779b97f4a7c15
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}
