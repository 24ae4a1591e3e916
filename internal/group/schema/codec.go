package schema

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"time"

	"muster/internal/metadata"
)

// Kafka's two encodings. In the plain one a string has a length of 16 bits before it, a
// list or bytes one of 32 bits; -1 is null. In the flexible one a length is a varint with
// one added, zero is null, and every structure ends with its tagged fields.

const (
	// maxString is how long a string may be. Kafka reads no longer one, though the
	// flexible encoding could have it.
	maxString = math.MaxInt16
	// What the length of a string and of a list take in the flexible encoding, at most.
	stringOverhead = 3
	listOverhead   = 5
)

// The sizes are upper bounds. A string that cannot be written counts as larger than any
// batch, so that its record does not fit and is refused.

func plainSize(s string) int {
	if len(s) > maxString {
		return math.MaxInt32
	}
	return 2 + len(s)
}

func stringSize(s string) int { return plainSize(s) - 2 + stringOverhead }

func nullableSize(s *string) int {
	if s == nil {
		return 2
	}
	return stringSize(*s)
}

func stringsSize(list []string) int {
	n := listOverhead
	for _, s := range list {
		n += stringSize(s)
	}
	return n
}

// buffer returns a buffer for so many bytes. A size that says that something cannot be
// written is not believed.
func buffer(size int) []byte { return make([]byte, 0, min(size, 1<<20)) }

func appendInt8(b []byte, n int8) []byte   { return append(b, byte(n)) }
func appendInt16(b []byte, n int16) []byte { return binary.BigEndian.AppendUint16(b, uint16(n)) }
func appendInt32(b []byte, n int32) []byte { return binary.BigEndian.AppendUint32(b, uint32(n)) }
func appendInt64(b []byte, n int64) []byte { return binary.BigEndian.AppendUint64(b, uint64(n)) }

func appendUUID(b []byte, id metadata.TopicID) []byte { return append(b, id[:]...) }

func appendMillis(b []byte, d time.Duration) []byte { return appendInt64(b, d.Milliseconds()) }

func appendPlain(b []byte, s string) []byte { return append(appendInt16(b, int16(len(s))), s...) }

func appendPlainNullable(b []byte, s *string) []byte {
	if s == nil {
		return appendInt16(b, -1)
	}
	return appendPlain(b, *s)
}

func appendPlainBytes(b, v []byte) []byte { return append(appendInt32(b, int32(len(v))), v...) }

func appendUvarint(b []byte, n int) []byte { return binary.AppendUvarint(b, uint64(n)) }

func uvarintSize(n int) int { return (bits.Len64(uint64(n)|1) + 6) / 7 }

func appendLength(b []byte, n int) []byte { return appendUvarint(b, n+1) }

func appendString(b []byte, s string) []byte { return append(appendLength(b, len(s)), s...) }

func appendNullable(b []byte, s *string) []byte {
	if s == nil {
		return append(b, 0)
	}
	return appendString(b, *s)
}

func appendBytes(b, v []byte) []byte { return append(appendLength(b, len(v)), v...) }

func appendStrings(b []byte, list []string) []byte {
	b = appendLength(b, len(list))
	for _, s := range list {
		b = appendString(b, s)
	}
	return b
}

func appendInt32s(b []byte, list []int32) []byte {
	b = appendLength(b, len(list))
	for _, n := range list {
		b = appendInt32(b, n)
	}
	return b
}

func int32sSize(list []int32) int { return uvarintSize(len(list)+1) + 4*len(list) }

var errTruncated = errors.New("it ends early, or has a length that cannot be")

// decoder reads both encodings. Whatever the bytes say, nothing larger is made than they
// have room for. After the first error all that it reads is empty, and err says why.
type decoder struct {
	b   []byte
	err error
}

func (d *decoder) fail(err error) {
	d.b = nil
	if d.err == nil {
		d.err = err
	}
}

// take returns the next bytes, which are not a copy; nil if there are too few.
func (d *decoder) take(n int) []byte {
	if n < 0 || n > len(d.b) {
		d.fail(errTruncated)
		return nil
	}
	out := d.b[:n:n]
	d.b = d.b[n:]
	return out
}

func (d *decoder) int8() int8 {
	if b := d.take(1); b != nil {
		return int8(b[0])
	}
	return 0
}

func (d *decoder) int16() int16 {
	if b := d.take(2); b != nil {
		return int16(binary.BigEndian.Uint16(b))
	}
	return 0
}

func (d *decoder) int32() int32 {
	if b := d.take(4); b != nil {
		return int32(binary.BigEndian.Uint32(b))
	}
	return 0
}

func (d *decoder) int64() int64 {
	if b := d.take(8); b != nil {
		return int64(binary.BigEndian.Uint64(b))
	}
	return 0
}

// millis reads a duration that is not negative, and no longer than any timeout.
func (d *decoder) millis() time.Duration {
	return time.Duration(min(uint64(d.int64()), math.MaxInt32)) * time.Millisecond
}

func (d *decoder) uuid() (id metadata.TopicID) {
	copy(id[:], d.take(len(id)))
	return id
}

func (d *decoder) plain() string { return string(d.take(int(d.int16()))) }

func (d *decoder) plainNullable() *string {
	n := d.int16()
	if n < 0 {
		return nil
	}
	s := string(d.take(int(n)))
	return &s
}

// plainBytes returns a copy: what is read of a log is large, and its buffer is used again.
func (d *decoder) plainBytes() []byte { return append([]byte{}, d.take(int(d.int32()))...) }

// plainElements reads how many elements follow, each of which takes some bytes at least.
// Null is none.
func (d *decoder) plainElements(each int) int {
	n := int64(d.int32())
	if n*int64(each) > int64(len(d.b)) {
		d.fail(errTruncated)
		return 0
	}
	return int(max(n, 0))
}

// uvarint reads an unsigned number of 32 bits at most.
func (d *decoder) uvarint() uint32 {
	n, width := binary.Uvarint(d.b)
	if width <= 0 || n > math.MaxUint32 {
		d.fail(errTruncated)
		return 0
	}
	d.b = d.b[width:]
	return uint32(n)
}

// length is elements where null, which is -1, is allowed.
func (d *decoder) length(each int) int {
	n := int64(d.uvarint()) - 1
	if n*int64(each) > int64(len(d.b)) {
		d.fail(errTruncated)
		return -1
	}
	return int(n)
}

// elements reads how many elements follow, each of which takes some bytes at least.
func (d *decoder) elements(each int) int {
	n := d.length(each)
	if n < 0 {
		d.fail(errTruncated)
	}
	return max(n, 0)
}

// bytes returns a copy, nil if there are none.
func (d *decoder) bytes() []byte {
	if n := d.elements(1); n > 0 {
		return append([]byte(nil), d.take(n)...)
	}
	return nil
}

// long reads a string of any length.
func (d *decoder) long() string { return string(d.take(d.elements(1))) }

func (d *decoder) string() string {
	n := d.elements(1)
	if n > maxString {
		d.fail(fmt.Errorf("a string of %d bytes", n))
		return ""
	}
	return string(d.take(n))
}

func (d *decoder) nullable() *string {
	if d.err == nil && len(d.b) > 0 && d.b[0] == 0 {
		d.take(1)
		return nil
	}
	s := d.string()
	return &s
}

func (d *decoder) strings() []string {
	var out []string
	if n := d.elements(1); n > 0 {
		out = make([]string, n)
	}
	for i := range out {
		out[i] = d.string()
	}
	return out
}

// int32s reads a list, of which null is empty if that is allowed.
func (d *decoder) int32s(nullable bool) []int32 {
	n := d.length(4)
	if n < 0 && !nullable {
		d.fail(errTruncated)
	}
	if n <= 0 {
		return nil
	}
	out := make([]int32, n)
	for i := range out {
		out[i] = d.int32()
	}
	return out
}

// tagged reads the next of the tagged fields at the end of a structure. The caller reads
// all of it, or skips it if it does not know the tag, which is of a later Kafka.
func (d *decoder) tagged() (tag uint32, field decoder) {
	tag = d.uvarint()
	field.b = d.take(int(min(d.uvarint(), math.MaxInt32)))
	return tag, field
}

// read takes over what was wrong with a tagged field.
func (d *decoder) read(field *decoder) {
	if err := field.end(); err != nil {
		d.fail(err)
	}
}

// end says what was wrong. Nothing comes after the last field.
func (d *decoder) end() error {
	if d.err == nil && len(d.b) > 0 {
		return fmt.Errorf("%d bytes too many", len(d.b))
	}
	return d.err
}
