package group

import (
	"encoding/binary"
	"errors"
)

// errSubscription says that a member's metadata is not a consumer's.
var errSubscription = errors.New("not a subscription of the consumer protocol")

// subscribedTopics reads the topics out of a subscription.
func subscribedTopics(b []byte) ([]string, error) {
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

// subscribes says whether a member of the group subscribes to the topic. It
// errs on the side of yes: a member whose subscription cannot be read may.
func (g *classicGroup) subscribes() func(topic string) bool {
	topics := map[string]bool{}
	unknown := false
	for m := g.members.first; m != nil; m = m.next {
		list, err := subscribedTopics(m.metadata(g.protocol))
		if err != nil {
			unknown = true
			break
		}
		for _, t := range list {
			topics[t] = true
		}
	}
	return func(topic string) bool { return unknown || topics[topic] }
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
