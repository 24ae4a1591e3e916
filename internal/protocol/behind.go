package protocol

import (
	"encoding/binary"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// TagBehind is the number of a tagged field of muster's own in OffsetFetch. In a
// group of the request, empty, it asks to count how many records the group has
// yet to read, where the difference of offsets does not tell; in a partition of
// the response it is the answer. Unknown tags are ignored (KIP-482), so that
// other brokers and clients need not know of this one. Kafka numbers its
// own tags from 0.
const TagBehind = 28021

// Behind is a number of records that are yet to be read, or at least so many.
type Behind struct {
	Records int64
	AtLeast bool
}

// behindSize is the size of a Behind: the number, and 1 if it is a least one.
const behindSize = 9

// AskBehind asks for counts in a group of an OffsetFetch request.
func AskBehind(group *kmsg.Tags) { group.Set(TagBehind, nil) }

// AsksBehind says whether a group of an OffsetFetch request asks for counts.
func AsksBehind(group *kmsg.Tags) bool { return hasTag(group, TagBehind) }

func hasTag(tags *kmsg.Tags, number uint32) bool {
	has := false
	tags.Each(func(tag uint32, _ []byte) { has = has || tag == number })
	return has
}

// SetBehind puts a count into a partition of an OffsetFetch response.
func SetBehind(partition *kmsg.Tags, b Behind) {
	value := binary.BigEndian.AppendUint64(make([]byte, 0, behindSize), uint64(b.Records))
	least := byte(0)
	if b.AtLeast {
		least = 1
	}
	partition.Set(TagBehind, append(value, least))
}

// GetBehind returns the count of a partition of an OffsetFetch response, nil if
// there is none. It takes longer values, of which later versions may say more.
func GetBehind(partition *kmsg.Tags) *Behind {
	var out *Behind
	partition.Each(func(tag uint32, value []byte) {
		if tag != TagBehind || len(value) < behindSize {
			return
		}
		if n := int64(binary.BigEndian.Uint64(value)); n >= 0 {
			out = &Behind{Records: n, AtLeast: value[8] == 1}
		}
	})
	return out
}
