package group

import (
	"encoding/binary"

	"muster/internal/metadata"
)

// The records of groups of the consumer protocol (KIP-848), which are Kafka's own.
// A nil value is a tombstone.
type (
	// ConsumerEpochRecord is the epoch of a group.
	ConsumerEpochRecord struct {
		Group string
		Value *ConsumerEpoch
	}
	// ConsumerTopicsRecord is what Kafka before 4.1 remembered of the topics that a
	// group subscribes to. What it says is not kept, only that it is there: whoever
	// bumps the group's epoch removes it.
	ConsumerTopicsRecord struct {
		Group string
		Live  bool
	}
	// ConsumerMemberRecord is what a member has said of itself.
	ConsumerMemberRecord struct {
		Group, Member string
		Value         *ConsumerMember
	}
	// ConsumerTargetEpochRecord is the group epoch that the target assignment is of.
	ConsumerTargetEpochRecord struct {
		Group string
		Value *ConsumerTargetEpoch
	}
	// ConsumerTargetRecord is the target assignment of a member.
	ConsumerTargetRecord struct {
		Group, Member string
		Value         *ConsumerTarget
	}
	// ConsumerCurrentRecord is the current assignment of a member.
	ConsumerCurrentRecord struct {
		Group, Member string
		Value         *ConsumerCurrent
	}
	// ConsumerRegexRecord is what a regular expression was found to match.
	ConsumerRegexRecord struct {
		Group, Regex string
		Value        *ConsumerRegex
	}
)

// ConsumerEpoch is the epoch of a group, with a hash of the topics that it
// subscribes to, zero for none or not known.
type ConsumerEpoch struct {
	Epoch int32
	Hash  int64
}

// ConsumerMember is what a member has said of itself.
type ConsumerMember struct {
	Instance, Rack         *string
	ClientID, Host         string
	Topics                 []string
	Regex                  *string // "" is none, as is nil
	RebalanceTimeoutMillis int32
	Assignor               *string
	Classic                *ClassicMember // nil unless the member uses the classic protocol
}

// ClassicMember is what a group of the consumer protocol knows of a member that
// uses the classic one.
type ClassicMember struct {
	SessionTimeoutMillis int32
	Protocols            []ClassicProtocol
}

// ClassicProtocol is a protocol that a member supports.
type ClassicProtocol struct {
	Name     string
	Metadata []byte
}

// ConsumerTargetEpoch is the group epoch of the target assignment, and when that
// was made, in milliseconds; zero if it is not known.
type ConsumerTargetEpoch struct {
	Epoch     int32
	Timestamp int64
}

// ConsumerTarget is the target assignment of a member.
type ConsumerTarget struct {
	Assigned []TopicPartitions
}

// TopicPartitions are partitions of a topic.
type TopicPartitions struct {
	Topic      metadata.TopicID
	Partitions []int32
}

// ConsumerCurrent is the current assignment of a member, with its epoch, the one
// before that, and its state.
type ConsumerCurrent struct {
	Epoch, Previous int32
	State           int8
	Assigned        []OwnedPartitions
	Pending         []OwnedPartitions // to be revoked
}

// OwnedPartitions are partitions of a topic that a member may be working on. Epochs
// has, for each, the epoch in which the member got it. It is empty in records of
// Kafka before 4.3, and where its length would be wrong: Kafka then takes the
// member's epoch, or 0 if that is negative, and so must everybody.
type OwnedPartitions struct {
	Topic      metadata.TopicID
	Partitions []int32
	Epochs     []int32
}

// ConsumerRegex is what a regular expression matched: topics, as of which version
// of the metadata, and when.
type ConsumerRegex struct {
	Topics             []string
	Version, Timestamp int64
}

// The keys. All values have the same version.
const (
	consumerEpochKeyVersion       = 3
	consumerTopicsKeyVersion      = 4
	consumerMemberKeyVersion      = 5
	consumerTargetEpochKeyVersion = 6
	consumerTargetKeyVersion      = 7
	consumerCurrentKeyVersion     = 8
	consumerRegexKeyVersion       = 16

	consumerValueVersion = 0
)

// consumerKey returns the key of a record: the group, and what else it is about.
func consumerKey(version uint16, names ...string) []byte {
	n := 2
	for _, s := range names {
		n += 2 + len(s)
	}
	key := binary.BigEndian.AppendUint16(make([]byte, 0, n), version)
	for _, s := range names {
		key = appendString(key, s)
	}
	return key
}

// consumerKeySize is the size of a key, and of a value's version.
func consumerKeySize(names ...string) int {
	n := 4
	for _, s := range names {
		n += textSize(s)
	}
	return n
}

// consumerValue returns the beginning of a value.
func consumerValue(size int) []byte {
	return binary.BigEndian.AppendUint16(make([]byte, 0, size), consumerValueVersion)
}
