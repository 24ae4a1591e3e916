package records

import (
	"github.com/twmb/franz-go/pkg/kgo"
)

// partitioner sends a record to the partition that it names, and all others
// where the inner partitioner wants them: by the hash of the key, as Kafka's
// own clients do.
type partitioner struct{ inner kgo.Partitioner }

func (p partitioner) ForTopic(topic string) kgo.TopicPartitioner {
	return topicPartitioner{p.inner.ForTopic(topic)}
}

type topicPartitioner struct{ inner kgo.TopicPartitioner }

func (p topicPartitioner) RequiresConsistency(r *kgo.Record) bool {
	return r.Partition >= 0 || p.inner.RequiresConsistency(r)
}

func (p topicPartitioner) Partition(r *kgo.Record, n int) int {
	if r.Partition >= 0 {
		return int(r.Partition)
	}
	return p.inner.Partition(r, n)
}

// OnNewBatch lets records without a key move to another partition.
func (p topicPartitioner) OnNewBatch() {
	if inner, ok := p.inner.(kgo.TopicPartitionerOnNewBatch); ok {
		inner.OnNewBatch()
	}
}
