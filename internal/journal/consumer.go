package journal

import (
	"encoding/json"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Share is how many partitions a member of a consumer group has, and is to have.
type Share struct {
	Who
	Before int `json:"before"`
	After  int `json:"after"`
}

// Revoke is a member of a consumer group that must let go of partitions, and who is to
// have them: they wait until it has. If it has not within its rebalance timeout it is
// fenced. Lists may be shorter than the counts beside them.
type Revoke struct {
	Who
	Parts   []Parts       `json:"partitions,omitempty"`
	PartN   int           `json:"partitionCount,omitempty"`
	For     []Who         `json:"for,omitempty"`
	ForN    int           `json:"forCount,omitempty"`
	Timeout time.Duration `json:"timeoutNs,omitempty"` // its rebalance timeout
	Held    time.Duration `json:"heldNs,omitempty"`    // since it was told to
}

// Parts are partitions of a topic.
type Parts struct {
	Topic      string  `json:"topic"`
	Partitions []int32 `json:"partitions"`
}

// TopicChanges is what happened to topics. The list may be shorter than the count.
type TopicChanges struct {
	List []TopicChange `json:"list,omitempty"`
	N    int           `json:"count,omitempty"`
}

// TopicChange is what happened to a topic that members subscribe to.
type TopicChange struct {
	Topic  string          `json:"topic"`
	Kind   TopicChangeKind `json:"kind"`
	Before int             `json:"partitionsBefore,omitempty"`
	After  int             `json:"partitionsAfter,omitempty"`
}

// TopicChangeKind says what happened to a topic.
type TopicChangeKind string

// What happens to topics.
const (
	TopicCreated   TopicChangeKind = "created"
	TopicGrown     TopicChangeKind = "grown"
	TopicDeleted   TopicChangeKind = "deleted"
	TopicRecreated TopicChangeKind = "recreated" // another topic of the same name
)

// MemberStatus is what ConsumerGroupDescribe has no place for: what a member asks for, what
// it has yet to let go of, and since when. It stands in a tagged field of ours, as JSON,
// which other clients skip.
type MemberStatus struct {
	Assignor string    `json:"assignor,omitempty"` // that the member asks for
	Matches  *int      `json:"matches,omitempty"`  // how many topics its regular expression matches, nil if that is not known yet
	Revoking []Parts   `json:"revoking,omitempty"` // what it was told to let go of
	Waits    bool      `json:"waits,omitempty"`    // for others to let go
	Since    time.Time `json:"since,omitzero"`     // it was told, or waits
	Until    time.Time `json:"until,omitzero"`     // it must have let go
	Heard    time.Time `json:"heard,omitzero"`     // when its last heartbeat came, if it is to let go
	Session  time.Time `json:"session,omitzero"`   // when the next one must have come
}

// memberStatusTag is the number of the tagged field.
const memberStatusTag = 10_004

// Set writes the status of a member into the tagged fields of a message, if there is
// anything to say.
func (s *MemberStatus) Set(tags *kmsg.Tags) {
	if s.Assignor == "" && s.Matches == nil && len(s.Revoking) == 0 && !s.Waits {
		return
	}
	if b, err := json.Marshal(s); err == nil {
		tags.Set(memberStatusTag, b)
	}
}

// MemberStatusOf reads what Set wrote, nil if there is nothing.
func MemberStatusOf(tags *kmsg.Tags) *MemberStatus {
	var out *MemberStatus
	tags.Each(func(tag uint32, b []byte) {
		s := &MemberStatus{}
		if tag == memberStatusTag && json.Unmarshal(b, s) == nil {
			out = s
		}
	})
	return out
}
