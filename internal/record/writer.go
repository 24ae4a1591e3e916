package record

import (
	"encoding/binary"
	"math/bits"
)

// Writer writes one batch, record by record, to the end of a buffer. It does
// not pack; Build does.
type Writer struct {
	out   []byte
	start int
	t     Template
	base  int64 // timestamp of the first record
	max   int64
	last  int32
	count int32
}

// NewWriter begins a batch at the end of out.
func NewWriter(out []byte, t Template) *Writer {
	w := &Writer{out: out, start: len(out), t: t, base: t.MaxTimestamp, max: t.MaxTimestamp, last: t.LastOffsetDelta}
	var header [HeaderSize]byte
	w.out = append(w.out, header[:]...)
	return w
}

// Add adds a record. Its OffsetDelta and Timestamp are used, its Offset is not.
func (w *Writer) Add(r *Record) {
	if w.count == 0 {
		w.base, w.max = r.Timestamp, r.Timestamp
	}
	w.count++
	w.max = max(w.max, r.Timestamp)
	w.last = max(w.last, r.OffsetDelta)
	w.out = appendRecord(w.out, r, w.base)
}

// Finish completes the batch and returns the buffer with it.
func (w *Writer) Finish() []byte {
	b := Batch(w.out[w.start:])
	b.SetBaseOffset(w.t.BaseOffset)
	binary.BigEndian.PutUint32(b[8:], uint32(len(b)-lengthOverhead))
	b.SetLeaderEpoch(w.t.LeaderEpoch)
	b[16] = 2
	binary.BigEndian.PutUint16(b[21:], w.t.attributes())
	binary.BigEndian.PutUint32(b[23:], uint32(w.last))
	binary.BigEndian.PutUint64(b[27:], uint64(w.base))
	binary.BigEndian.PutUint64(b[35:], uint64(w.max))
	binary.BigEndian.PutUint64(b[43:], uint64(w.t.ProducerID))
	binary.BigEndian.PutUint16(b[51:], uint16(w.t.ProducerEpoch))
	binary.BigEndian.PutUint32(b[53:], uint32(w.t.BaseSequence))
	binary.BigEndian.PutUint32(b[57:], uint32(w.count))
	b.seal()
	return w.out
}

// Size returns how many bytes a record takes in a batch whose first record has
// the given timestamp.
func Size(r *Record, baseTimestamp int64) int {
	n := bodySize(r, baseTimestamp)
	return varintSize(int64(n)) + n
}

// bodySize is the size without the length in front.
func bodySize(r *Record, baseTimestamp int64) int {
	n := 1 + varintSize(r.Timestamp-baseTimestamp) + varintSize(int64(r.OffsetDelta)) +
		nullableSize(r.Key) + nullableSize(r.Value) + varintSize(int64(len(r.Headers)))
	for i := range r.Headers {
		n += varintSize(int64(len(r.Headers[i].Key))) + len(r.Headers[i].Key) + nullableSize(r.Headers[i].Value)
	}
	return n
}

func nullableSize(b []byte) int {
	if b == nil {
		return 1
	}
	return varintSize(int64(len(b))) + len(b)
}

// varintSize is the size of a number as binary.AppendVarint writes it.
func varintSize(n int64) int {
	zigzag := uint64(n)<<1 ^ uint64(n>>63)
	return (bits.Len64(zigzag|1) + 6) / 7
}

func appendRecord(dst []byte, r *Record, baseTimestamp int64) []byte {
	dst = binary.AppendVarint(dst, int64(bodySize(r, baseTimestamp)))
	dst = append(dst, 0) // Record attributes, unused in v2.
	dst = binary.AppendVarint(dst, r.Timestamp-baseTimestamp)
	dst = binary.AppendVarint(dst, int64(r.OffsetDelta))
	dst = appendNullable(dst, r.Key)
	dst = appendNullable(dst, r.Value)
	dst = binary.AppendVarint(dst, int64(len(r.Headers)))
	for i := range r.Headers {
		dst = binary.AppendVarint(dst, int64(len(r.Headers[i].Key)))
		dst = append(dst, r.Headers[i].Key...)
		dst = appendNullable(dst, r.Headers[i].Value)
	}
	return dst
}

func appendNullable(dst, b []byte) []byte {
	if b == nil {
		return binary.AppendVarint(dst, -1)
	}
	dst = binary.AppendVarint(dst, int64(len(b)))
	return append(dst, b...)
}
