package search

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"hash/crc32"
)

// Cursor is where a search stopped, for whoever wants to go on with it.
type Cursor struct {
	// Question stands for what is looked for, and in which topic: it makes no sense to
	// go on with another question.
	Question uint64
	Newest   bool // The latest come first.
	// Searched and Found are how many records were looked at and found so far, and
	// Total how many there were to begin with, -1 if that is not known.
	Searched, Found, Total int64
	// Spans are what is left, by partition.
	Spans []Span
}

// Span is a part of a partition: the offsets from Low on and below High.
type Span struct {
	Partition int32
	Low, High int64
}

// ErrCursor says that a cursor is none, or one of another question.
var ErrCursor = errors.New("the search cannot be gone on with: after is not the next of the same search; begin it anew")

// cursorVersion is the first byte of a cursor.
const cursorVersion = 1

// maxCursor is how long a cursor may be.
const maxCursor = 8 << 10

// String writes a cursor as text for an address. Its checksum keeps no one from making
// one: who does may search where they may search anyway.
func (c *Cursor) String() string {
	b := []byte{cursorVersion, 0}
	if c.Newest {
		b[1] = 1
	}
	b = binary.BigEndian.AppendUint64(b, c.Question)
	for _, n := range []int64{c.Searched, c.Found, c.Total} {
		b = binary.AppendVarint(b, n)
	}
	last := int32(-1)
	for _, s := range c.Spans {
		b = binary.AppendUvarint(b, uint64(s.Partition-last-1))
		b = binary.AppendUvarint(b, uint64(s.Low))
		b = binary.AppendUvarint(b, uint64(s.High-s.Low))
		last = s.Partition
	}
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	return base64.RawURLEncoding.EncodeToString(b)
}

// ParseCursor reads a cursor.
func ParseCursor(text string) (*Cursor, error) {
	b, err := base64.RawURLEncoding.DecodeString(text)
	if len(text) > maxCursor || err != nil || len(b) < 2+8+3+4 || b[0] != cursorVersion || b[1] > 1 {
		return nil, ErrCursor
	}
	body := b[:len(b)-4]
	if binary.BigEndian.Uint32(b[len(body):]) != crc32.ChecksumIEEE(body) {
		return nil, ErrCursor
	}
	c := &Cursor{Newest: b[1] == 1, Question: binary.BigEndian.Uint64(b[2:])}
	r := numbers{b: body[10:]}
	c.Searched, c.Found, c.Total = r.signed(), r.signed(), r.signed()
	if c.Searched < 0 || c.Found < 0 || c.Total < -1 {
		return nil, ErrCursor
	}
	last := int64(-1)
	for len(r.b) > 0 && !r.bad {
		skipped, low, size := r.unsigned(), r.unsigned(), r.unsigned()
		number := last + 1 + skipped
		if r.bad || number > 1<<31-1 || low+size < low || len(c.Spans) == MaxPartitions {
			return nil, ErrCursor
		}
		c.Spans = append(c.Spans, Span{int32(number), low, low + size})
		last = number
	}
	if r.bad {
		return nil, ErrCursor
	}
	return c, nil
}

// numbers reads numbers. After the first failure all are 0.
type numbers struct {
	b   []byte
	bad bool
}

func (r *numbers) signed() int64 {
	n, size := binary.Varint(r.b)
	r.took(size)
	return n
}

// unsigned reads a number that fits into an offset.
func (r *numbers) unsigned() int64 {
	n, size := binary.Uvarint(r.b)
	if r.took(size); n > 1<<63-1 {
		r.bad = true
		return 0
	}
	return int64(n)
}

func (r *numbers) took(size int) {
	if size <= 0 {
		r.bad, r.b = true, nil
		return
	}
	r.b = r.b[size:]
}
