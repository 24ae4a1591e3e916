package group

import (
	"encoding/binary"

	"muster/internal/metadata"
)

// wants is what a consumer of the classic protocol says of itself with a subscription.
type wants struct {
	version int16
	topics  []string
	owned   []topicPartition // since version 1: what it has, and has not let go of
	rack    *string          // since version 3
}

// readWants reads a subscription, all of it. Counts are compared with what is there
// before room is made for them: these are a client's bytes.
func readWants(b []byte) (w wants, err error) {
	s, err := readSubscription(b)
	if err != nil {
		return w, err
	}
	w.version, w.topics = int16(binary.BigEndian.Uint16(b)), s.topics
	rest := s.rest
	if w.version < 1 || len(rest) == 0 { // There are clients that name a version and leave out what it adds.
		return w, nil
	}
	if w.owned, rest, err = readOwned(rest); err != nil || w.version < 3 || len(rest) == 0 {
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
		w.rack = &rack
	}
	return w, nil
}

// readOwned reads a list of topics with partitions, and returns what comes after it.
func readOwned(b []byte) (out []topicPartition, rest []byte, err error) {
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
			out = append(out, topicPartition{topic, int32(binary.BigEndian.Uint32(b))})
			b = b[4:]
		}
	}
	return out, b, nil
}

// partsNamed finds partitions by the names of their topics. Of a topic that does not
// exist there is nothing to have.
func partsNamed(image *metadata.Image, list []topicPartition) []part {
	var out []part
	for _, tp := range list {
		if image == nil {
			break
		}
		if t := image.Topic(tp.topic); t != nil {
			out = append(out, part{t.ID, tp.partition})
		}
	}
	return sortedParts(out)
}
