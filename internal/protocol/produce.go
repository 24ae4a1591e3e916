package protocol

import (
	"encoding/binary"
	"fmt"
	"math"
)

// produceFlexible is the first version of Produce with compact types.
const produceFlexible = 9

// ProduceRequest is the part of a Produce request before its topics. The topics
// are read one partition at a time, in place.
type ProduceRequest struct {
	TransactionalID *string
	Acks            int16
	TimeoutMillis   int32

	r produceReader
}

// ProducePartition is one partition of a Produce request. Records points into
// the frame.
type ProducePartition struct {
	Topic   string   // up to version 12
	TopicID [16]byte // from version 13
	Index   int32
	Records []byte
	// First says that the partition is the first of its topic in the request.
	First bool
}

// produceReader reads the types of a Produce request of one version.
type produceReader struct {
	b        []byte
	flexible bool
	ids      bool
	bad      bool

	topics, partitions int
	topic              ProducePartition
}

// ParseProduce reads a Produce request of version 3 or later.
func (r *Request) ParseProduce() (*ProduceRequest, error) {
	p := &ProduceRequest{r: produceReader{b: r.Body, flexible: r.Version >= produceFlexible, ids: r.Version >= 13}}
	if id, ok := p.r.text(); ok {
		p.TransactionalID = &id
	}
	if head := p.r.span(6); head != nil {
		p.Acks = int16(binary.BigEndian.Uint16(head))
		p.TimeoutMillis = int32(binary.BigEndian.Uint32(head[2:]))
	}
	p.r.topics = p.r.count()
	return p, p.Err()
}

// Err returns what was wrong with the request, as far as it has been read.
func (p *ProduceRequest) Err() error {
	if p.r.bad {
		return fmt.Errorf("a Produce request: %w", errMalformed)
	}
	return nil
}

// Next reads the next partition; false at the end, or if the request is
// malformed, which Err tells.
func (p *ProduceRequest) Next() (ProducePartition, bool) {
	r := &p.r
	first := false
	for r.partitions == 0 {
		if r.bad || r.topics == 0 {
			r.finish()
			return ProducePartition{}, false
		}
		r.nextTopic()
		first = true
	}
	out := r.topic
	out.First = first
	if index := r.span(4); index != nil {
		out.Index = int32(binary.BigEndian.Uint32(index))
	}
	out.Records = r.bytes()
	r.tags()
	if r.partitions--; r.partitions == 0 {
		r.tags()
	}
	return out, !r.bad
}

func (r *produceReader) nextTopic() {
	r.topics--
	r.topic = ProducePartition{}
	if r.ids {
		copy(r.topic.TopicID[:], r.span(16))
	} else {
		r.topic.Topic, _ = r.text()
	}
	if r.partitions = r.count(); r.partitions == 0 {
		r.tags()
	}
}

// finish reads the request's own tags, after which nothing may follow.
func (r *produceReader) finish() {
	r.tags()
	if len(r.b) != 0 {
		r.fail()
	}
}

func (r *produceReader) fail() {
	r.bad, r.b, r.topics, r.partitions = true, nil, 0, 0
}

func (r *produceReader) span(n int) []byte {
	if n < 0 || n > len(r.b) {
		r.fail()
		return nil
	}
	out := r.b[:n:n]
	r.b = r.b[n:]
	return out
}

// length reads a length of old or compact form; -1 is null.
func (r *produceReader) length(width int) int {
	if r.flexible {
		u, w := uvarint(r.b)
		if w <= 0 {
			r.fail()
			return -1
		}
		r.b = r.b[w:]
		return int(u) - 1
	}
	b := r.span(width)
	switch len(b) {
	case 2:
		return int(int16(binary.BigEndian.Uint16(b)))
	case 4:
		return int(int32(binary.BigEndian.Uint32(b)))
	}
	return -1
}

// text reads a text, which as in Kafka is no longer than older versions can say: a
// transactional id is kept while its coordinator is asked.
func (r *produceReader) text() (string, bool) {
	n := r.length(2)
	if n > math.MaxInt16 {
		r.fail()
	}
	if n < 0 || r.bad {
		return "", false
	}
	return string(r.span(n)), true
}

func (r *produceReader) bytes() []byte {
	n := r.length(4)
	if n < 0 {
		return nil
	}
	return r.span(n)
}

// count reads an array's length, which cannot be more than the bytes left.
func (r *produceReader) count() int {
	n := r.length(4)
	if n > len(r.b) {
		r.fail()
		return 0
	}
	return max(n, 0)
}

func (r *produceReader) tags() {
	if !r.flexible || r.bad {
		return
	}
	var memory int // Tags are not kept.
	rest, err := walkTags(r.b, &memory)
	if err != nil {
		r.fail()
		return
	}
	r.b = rest
}
