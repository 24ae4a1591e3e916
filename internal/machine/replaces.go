package machine

import (
	"encoding/binary"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Replaces says of an offset in an OffsetCommit which other one it takes the place of, because both
// mean the same record. The broker itself sends that when it has converted a topic: no member is asked, and
// nothing is changed if the group has committed another offset meanwhile.
type Replaces int64

// NoReplaces is that of an offset which a client commits.
const NoReplaces Replaces = -1

// replacesTag is the number of the tagged field.
const replacesTag = 10_007

// Set writes the offset into the tagged fields of a partition.
func (r Replaces) Set(tags *kmsg.Tags) {
	tags.Set(replacesTag, binary.BigEndian.AppendUint64(nil, uint64(r)))
}

// ReplacesOf reads what Set wrote; NoReplaces if there is nothing.
func ReplacesOf(tags *kmsg.Tags) Replaces {
	out := NoReplaces
	tags.Each(func(tag uint32, b []byte) {
		if tag == replacesTag && len(b) == 8 {
			out = Replaces(binary.BigEndian.Uint64(b))
		}
	})
	return out
}
