package journal

import "github.com/twmb/franz-go/pkg/kmsg"

// Holder is who holds a transaction, as far as its coordinator knows: no one after a
// load. Kafka's DescribeTransactions has no place for it, so it stands in tagged fields
// of ours, which other clients skip. The journal of transactions names people by it, too.
type Holder struct {
	ClientID string `json:"clientId,omitempty"`
	Host     string `json:"host,omitempty"`
}

// The numbers of the tagged fields. Kafka's own count up from zero.
const (
	holderClientTag = 10_001
	holderHostTag   = 10_002
)

// Set writes who it is into the tagged fields of a message.
func (h Holder) Set(tags *kmsg.Tags) {
	if h == (Holder{}) {
		return
	}
	tags.Set(holderClientTag, []byte(h.ClientID))
	tags.Set(holderHostTag, []byte(h.Host))
}

// HolderOf reads what Set wrote.
func HolderOf(tags *kmsg.Tags) Holder {
	var h Holder
	tags.Each(func(tag uint32, b []byte) {
		switch tag {
		case holderClientTag:
			h.ClientID = string(b)
		case holderHostTag:
			h.Host = string(b)
		}
	})
	return h
}
