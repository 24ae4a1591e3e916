package protocol

import (
	"encoding/binary"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// TagCheck is the number of a tagged field of muster's own in DescribeTopicPartitions. In a
// topic of the request it asks to check the first partition of the answer, from an offset on;
// in that partition of the response it is what was found. See TagBehind for how
// other brokers and clients take it.
const TagCheck = 28022

// Check is what was found in a part of a partition.
type Check struct {
	// Unable says why nothing was checked; the rest is empty then, but for the layout.
	Unable string `json:"unable,omitempty"`
	Layout string `json:"layout,omitempty"`
	// Start and End are the bounds of the log. Next is where the next part begins, which is End if this was
	// the last.
	Start   int64    `json:"start"`
	End     int64    `json:"end"`
	Next    int64    `json:"next"`
	Records int64    `json:"records"` // that are there
	Deleted int64    `json:"deleted"` // that had an offset and are not there any more
	Wrong   []string `json:"wrong,omitempty"`
}

// AskCheck asks for a check in a topic of a DescribeTopicPartitions request.
func AskCheck(topic *kmsg.Tags, from int64) {
	topic.Set(TagCheck, binary.BigEndian.AppendUint64(nil, uint64(from)))
}

// AsksCheck says whether a topic of a DescribeTopicPartitions request asks for a check, and
// from which offset on.
func AsksCheck(topic *kmsg.Tags) (from int64, asks bool) {
	topic.Each(func(tag uint32, value []byte) {
		if tag == TagCheck && len(value) >= 8 {
			from, asks = int64(binary.BigEndian.Uint64(value)), true
		}
	})
	return from, asks
}

// SetCheck puts what was found into a partition of a DescribeTopicPartitions response.
func SetCheck(partition *kmsg.Tags, c *Check) { setJSON(partition, TagCheck, c) }

// GetCheck returns what was found in a partition, nil if it was not checked.
func GetCheck(partition *kmsg.Tags) *Check { return getJSON[Check](partition, TagCheck) }
