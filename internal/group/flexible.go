package group

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
)

// Kafka's flexible encoding, as far as records have it that kmsg does not know: a
// length is a varint with one added, zero is null, and every structure ends with
// its tagged fields.

const (
	// maxText is how long a string may be in any record. Kafka reads no longer one,
	// though the encoding could have it.
	maxText = math.MaxInt16
	// textOverhead is what the length of a string takes, at most.
	textOverhead = 3
	// countOverhead is the same for a list.
	countOverhead = 5
	// taggedInt64Size is what appendTaggedInt64 appends, at most.
	taggedInt64Size = 3 + 8
)

// textSize returns how many bytes a string takes, or a few more. One that cannot
// be written counts as larger than any batch, so that its record does not fit and
// is refused.
func textSize(s string) int {
	if len(s) > maxText {
		return math.MaxInt32
	}
	return textOverhead + len(s)
}

// room returns a buffer for so many bytes. A size that says that something cannot be
// written is not believed.
func room(size int) []byte { return make([]byte, 0, min(size, 1<<20)) }

func nullableSize(s *string) int {
	if s == nil {
		return 1
	}
	return textSize(*s)
}

func textsSize(list []string) int {
	n := countOverhead
	for _, s := range list {
		n += textSize(s)
	}
	return n
}

func appendCount(b []byte, n int) []byte { return binary.AppendUvarint(b, uint64(n)+1) }

// appendSize appends how long a tagged field is, to which one is not added.
func appendSize(b []byte, n int) []byte { return binary.AppendUvarint(b, uint64(n)) }

// uvarintSize returns how many bytes a number takes that is not zero.
func uvarintSize(n uint64) int { return (bits.Len64(n) + 6) / 7 }

func appendText(b []byte, s string) []byte { return append(appendCount(b, len(s)), s...) }

func appendNullable(b []byte, s *string) []byte {
	if s == nil {
		return append(b, 0)
	}
	return appendText(b, *s)
}

func appendTexts(b []byte, list []string) []byte {
	b = appendCount(b, len(list))
	for _, s := range list {
		b = appendText(b, s)
	}
	return b
}

func appendInt32(b []byte, n int32) []byte { return binary.BigEndian.AppendUint32(b, uint32(n)) }

func appendInt64(b []byte, n int64) []byte { return binary.BigEndian.AppendUint64(b, uint64(n)) }

func appendInt32s(b []byte, list []int32) []byte {
	b = appendCount(b, len(list))
	for _, n := range list {
		b = appendInt32(b, n)
	}
	return b
}

// appendTaggedInt64 appends the tagged fields of a structure that has one, with
// tag 0, which Kafka leaves out when it is zero.
func appendTaggedInt64(b []byte, n int64) []byte {
	if n == 0 {
		return append(b, 0)
	}
	return appendInt64(append(b, 1, 0, 8), n)
}

var errCut = errors.New("it ends early, or has a length that cannot be")

// flexible reads the encoding. Whatever the bytes say, nothing larger is made than
// they have room for. After the first error all that it reads is empty, and err
// says why.
type flexible struct {
	b   []byte
	err error
}

func (f *flexible) fail(err error) {
	f.b = nil
	if f.err == nil {
		f.err = err
	}
}

// take returns the next bytes, which are not a copy; nil if there are too few.
func (f *flexible) take(n int) []byte {
	if n > len(f.b) {
		f.fail(errCut)
		return nil
	}
	out := f.b[:n:n]
	f.b = f.b[n:]
	return out
}

func (f *flexible) int8() int8 {
	if b := f.take(1); b != nil {
		return int8(b[0])
	}
	return 0
}

func (f *flexible) int32() int32 {
	if b := f.take(4); b != nil {
		return int32(binary.BigEndian.Uint32(b))
	}
	return 0
}

func (f *flexible) int64() int64 {
	if b := f.take(8); b != nil {
		return int64(binary.BigEndian.Uint64(b))
	}
	return 0
}

// uvarint reads an unsigned number of 32 bits at most.
func (f *flexible) uvarint() uint32 {
	n, width := binary.Uvarint(f.b)
	if width <= 0 || n > math.MaxUint32 {
		f.fail(errCut)
		return 0
	}
	f.b = f.b[width:]
	return uint32(n)
}

// count reads how many elements follow, each of which takes some bytes at least.
// It is -1 for null, also after an error.
func (f *flexible) count(each int) int {
	n := int64(f.uvarint()) - 1
	if n*int64(each) > int64(len(f.b)) {
		f.fail(errCut)
		return -1
	}
	return int(n)
}

// elements is count where null is not allowed.
func (f *flexible) elements(each int) int {
	n := f.count(each)
	if n < 0 {
		f.fail(errCut)
	}
	return max(n, 0)
}

// bytes returns bytes, which are not a copy; nil if there are none.
func (f *flexible) bytes() []byte {
	if n := f.elements(1); n > 0 {
		return f.take(n)
	}
	return nil
}

func (f *flexible) text() string {
	b := f.bytes()
	if len(b) > maxText {
		f.fail(fmt.Errorf("a string of %d bytes", len(b)))
		return ""
	}
	return string(b)
}

func (f *flexible) nullable() *string {
	if f.err == nil && len(f.b) > 0 && f.b[0] == 0 {
		f.take(1)
		return nil
	}
	s := f.text()
	return &s
}

func (f *flexible) texts() []string {
	var out []string
	if n := f.elements(1); n > 0 {
		out = make([]string, n)
	}
	for i := range out {
		out[i] = f.text()
	}
	return out
}

// int32s reads so many numbers.
func (f *flexible) int32s(n int) []int32 {
	if n <= 0 {
		return nil
	}
	out := make([]int32, n)
	for i := range out {
		out[i] = f.int32()
	}
	return out
}

// tagged reads the tagged fields at the end of a structure. The field with tag 0,
// if there is one, is given to known; the others are of a later Kafka.
func (f *flexible) tagged(known func(*flexible)) {
	for n := f.uvarint(); n > 0 && f.err == nil; n-- {
		tag := f.uvarint()
		field := flexible{b: f.take(int(min(f.uvarint(), math.MaxInt32)))}
		if tag != 0 || known == nil {
			continue
		}
		known(&field)
		if err := field.end(); err != nil {
			f.fail(err)
		}
	}
}

// end says what was wrong. Nothing comes after the tagged fields.
func (f *flexible) end() error {
	if f.err == nil && len(f.b) > 0 {
		return fmt.Errorf("%d bytes too many", len(f.b))
	}
	return f.err
}
