package handler

import (
	"encoding/binary"

	"muster/internal/metadata"
	"muster/internal/store"
)

// AssignedPartitions reads the partitions out of a consumer's assignment; false
// says that it is of another kind. The bytes are whatever a client sent: lengths
// are believed only as far as there are bytes, and what does not exist, or is
// named again, is left out, so that no one can make the broker hold more than
// there are partitions.
func AssignedPartitions(image *metadata.Image, b []byte) ([]store.TopicPartition, bool) {
	r := assignmentReader{b: b}
	r.number(2) // version
	var out []store.TopicPartition
	seen := map[store.TopicPartition]struct{}{}
	for range r.number(4) {
		name := string(r.span(r.number(2)))
		topic := image.Topic(name)
		for range r.number(4) {
			index := r.number(4)
			if r.bad {
				return nil, false
			}
			if topic == nil || index < 0 || index >= len(topic.Partitions) {
				continue
			}
			tp := store.TopicPartition{Topic: topic.Name, Partition: int32(index)}
			if _, again := seen[tp]; !again {
				seen[tp] = struct{}{}
				out = append(out, tp)
			}
		}
		if r.bad {
			return nil, false
		}
	}
	return out, !r.bad
}

// assignmentReader reads the types of an assignment; bad says that there were too
// few bytes for one.
type assignmentReader struct {
	b   []byte
	bad bool
}

func (r *assignmentReader) span(n int) []byte {
	if n < 0 || n > len(r.b) {
		r.bad = true
		return nil
	}
	out := r.b[:n]
	r.b = r.b[n:]
	return out
}

// number reads a number of so many bytes.
func (r *assignmentReader) number(width int) int {
	b := r.span(width)
	switch len(b) {
	case 2:
		return int(int16(binary.BigEndian.Uint16(b)))
	case 4:
		return int(int32(binary.BigEndian.Uint32(b)))
	}
	return 0
}
