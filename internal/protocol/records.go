package protocol

import (
	"encoding/binary"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// TagRecords is the number of a tagged field of muster's own in DescribeTopicPartitions. In a
// topic of the request, empty, it asks how many records its partitions have, where the
// difference of offsets does not tell; in a partition of the response it is their number, or
// negative if it is not known. Where it is absent the difference tells. See TagBehind for how other
// brokers and clients take it.
const TagRecords = 28023

// AskRecords asks for numbers of records in a topic of a DescribeTopicPartitions request.
func AskRecords(topic *kmsg.Tags) { topic.Set(TagRecords, nil) }

// AsksRecords says whether a topic of a DescribeTopicPartitions request asks for them.
func AsksRecords(topic *kmsg.Tags) bool { return hasTag(topic, TagRecords) }

// SetRecords puts a number into a partition of a DescribeTopicPartitions response.
func SetRecords(partition *kmsg.Tags, n int64) {
	partition.Set(TagRecords, binary.BigEndian.AppendUint64(nil, uint64(n)))
}

// GetRecords returns the number of a partition, if there is one. It takes longer values, of which
// later versions may say more.
func GetRecords(partition *kmsg.Tags) (n int64, ok bool) {
	partition.Each(func(tag uint32, value []byte) {
		if tag == TagRecords && len(value) >= 8 {
			n, ok = int64(binary.BigEndian.Uint64(value)), true
		}
	})
	return n, ok
}
