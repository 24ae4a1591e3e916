// Package subscription reads what consumers of the classic protocol put into JoinGroup and
// SyncGroup: subscriptions, with the partitions that a member owns, and assignments. These
// are a client's bytes. Counts are compared with what is there before room is made for them.
package subscription

import (
	"encoding/binary"
	"errors"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// errSubscription says that a member's metadata is not a consumer's.
var errSubscription = errors.New("not a subscription of the consumer protocol")

// SubscribedTopics reads the topics out of a subscription.
func SubscribedTopics(b []byte) ([]string, error) {
	topics, _, err := readTopics(b)
	return topics, err
}

// readTopics reads the topics, and returns what comes after them. All versions
// start like version 0: version, then the topics.
func readTopics(b []byte) ([]string, []byte, error) {
	if len(b) < 6 {
		return nil, nil, errSubscription
	}
	n := int(int32(binary.BigEndian.Uint32(b[2:])))
	b = b[6:]
	if n < 0 || n > len(b)/2 {
		return nil, nil, errSubscription
	}
	topics := make([]string, 0, n)
	for range n {
		if len(b) < 2 {
			return nil, nil, errSubscription
		}
		size := int(int16(binary.BigEndian.Uint16(b)))
		if size < 0 || size > len(b)-2 {
			return nil, nil, errSubscription
		}
		topics = append(topics, string(b[2:2+size]))
		b = b[2+size:]
	}
	return topics, b, nil
}

// plausible says whether bytes can be an assignment: a version, then topics with
// partitions, whose counts fit the bytes that are there. The decoder would
// believe any count.
func plausible(b []byte) bool {
	if len(b) < 6 {
		return false
	}
	n := int(int32(binary.BigEndian.Uint32(b[2:])))
	b = b[6:]
	for range n {
		if len(b) < 2 {
			return false
		}
		size := int(int16(binary.BigEndian.Uint16(b)))
		if size < 0 || len(b) < 2+size+4 {
			return false
		}
		b = b[2+size:]
		count := int(int32(binary.BigEndian.Uint32(b)))
		if count < 0 || count > (len(b)-4)/4 {
			return false
		}
		b = b[4+4*count:]
	}
	return n >= 0
}

// text returns how many bytes a string takes with its length, -1 if it is cut
// short.
func text(b []byte) int {
	if len(b) < 2 {
		return -1
	}
	n := max(int(int16(binary.BigEndian.Uint16(b))), 0)
	if len(b) < 2+n {
		return -1
	}
	return 2 + n
}

// parsedSubscription is a subscription of the consumer protocol.
type parsedSubscription struct {
	Topics   []string
	UserData []byte
	Rest     []byte // since version 1: owned partitions, their generation, the rack
}

func ReadSubscription(b []byte) (s parsedSubscription, err error) {
	s.Topics, b, err = readTopics(b)
	switch {
	case err != nil:
		return s, err
	case len(b) < 4:
		return s, errSubscription
	}
	n := max(int(int32(binary.BigEndian.Uint32(b))), 0)
	if n > len(b)-4 {
		return s, errSubscription
	}
	s.UserData, s.Rest = b[4:4+n], b[4+n:]
	return s, nil
}

// ConsumerType is the protocol type of consumers, whose subscriptions and
// assignments we can read.
const ConsumerType = "consumer"

type TopicPartition struct {
	Topic     string
	Partition int32
}

// EachAssigned reads an assignment of the consumer protocol; what cannot be read
// assigns nothing.
func EachAssigned(b []byte, fn func(TopicPartition)) {
	a, ok := ParseAssignment(b)
	if !ok {
		return
	}
	for _, t := range a.Topics {
		for _, p := range t.Partitions {
			fn(TopicPartition{t.Topic, p})
		}
	}
}

func ParseAssignment(b []byte) (kmsg.ConsumerMemberAssignment, bool) {
	a := kmsg.NewConsumerMemberAssignment()
	if len(b) == 0 || !plausible(b) {
		return a, false
	}
	return a, a.ReadFrom(b) == nil
}

// Subscription is what a consumer of the classic protocol says of itself with a subscription.
type Subscription struct {
	version int16
	Topics  []string
	Owned   []TopicPartition // since version 1: what it has, and has not let go of
	Rack    *string          // since version 3
}

// Read reads a subscription, all of it. Counts are compared with what is there
// before room is made for them: these are a client's bytes.
func Read(b []byte) (w Subscription, err error) {
	s, err := ReadSubscription(b)
	if err != nil {
		return w, err
	}
	w.version, w.Topics = int16(binary.BigEndian.Uint16(b)), s.Topics
	rest := s.Rest
	if w.version < 1 || len(rest) == 0 { // There are clients that name a version and leave out what it adds.
		return w, nil
	}
	if w.Owned, rest, err = readOwned(rest); err != nil || w.version < 3 || len(rest) == 0 {
		return w, err
	}
	if len(rest) < 4 { // The generation in which it got what it has.
		return w, errSubscription
	}
	rest = rest[4:]
	n := text(rest)
	if n < 0 {
		return w, errSubscription
	}
	if n > 2 {
		rack := string(rest[2:n])
		w.Rack = &rack
	}
	return w, nil
}

// readOwned reads a list of topics with partitions, and returns what comes after it.
func readOwned(b []byte) (out []TopicPartition, rest []byte, err error) {
	if len(b) < 4 {
		return nil, nil, errSubscription
	}
	count := int(int32(binary.BigEndian.Uint32(b)))
	b = b[4:]
	for range count {
		size := text(b)
		if size < 0 || len(b) < size+4 {
			return nil, nil, errSubscription
		}
		topic := string(b[2:size])
		n := int(int32(binary.BigEndian.Uint32(b[size:])))
		b = b[size+4:]
		if n > len(b)/4 {
			return nil, nil, errSubscription
		}
		for range n {
			out = append(out, TopicPartition{topic, int32(binary.BigEndian.Uint32(b))})
			b = b[4:]
		}
	}
	return out, b, nil
}
