// Package record reads and writes record batches of message format v2, the
// only format that muster stores.
//
// A Batch is the bytes as they lie on the wire and on disk, with accessors for
// the fields of its header; nothing is decoded or copied until someone asks
// for records. The checksum covers everything from the attributes on, so the
// base offset and the leader epoch can be written in place without computing
// it again. The package does no I/O and keeps no state.
//
//	0 base offset      17 crc32c            43 producer id
//	8 batch length     21 attributes        51 producer epoch
//	12 leader epoch    23 last offset delta 53 base sequence
//	16 magic           27 base timestamp    57 record count
//	                   35 max timestamp     61 records
package record

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
)

// Sizes and positions of the header.
const (
	HeaderSize = 61
	// lengthOverhead is what comes before the bytes that batch length counts.
	lengthOverhead = 12
	crcStart       = 21
	// MinBatchLength is the smallest value of the batch length field.
	MinBatchLength = HeaderSize - lengthOverhead
)

// Attribute bits.
const (
	codecMask        = 0x07
	timestampTypeBit = 0x08
	transactionalBit = 0x10
	controlBit       = 0x20
	deleteHorizonBit = 0x40
)

// NoProducerID marks a batch of a producer without idempotence.
const NoProducerID = -1

// NoTimestamp is the timestamp of records that have none.
const NoTimestamp = -1

// Errors of parsing and validation.
var (
	// ErrTruncated says that the bytes end before the batch does.
	ErrTruncated = errors.New("record batch is cut short")
	// ErrMagic says that the bytes are in a message format other than v2.
	ErrMagic = errors.New("message format is not v2 (magic 2)")
	// ErrCorrupt says that checksum or structure are wrong.
	ErrCorrupt = errors.New("record batch is corrupt")
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Batch is the bytes of one record batch, at least HeaderSize of them.
type Batch []byte

// Peek returns the size in bytes of the batch that b starts with, which may be
// more than b holds. It fails if b is shorter than the fields it needs or they
// make no sense.
func Peek(b []byte) (int, error) {
	if len(b) < crcStart {
		return 0, ErrTruncated
	}
	if magic := b[16]; magic != 2 {
		return 0, fmt.Errorf("%w: magic %d", ErrMagic, magic)
	}
	n := int32(binary.BigEndian.Uint32(b[8:]))
	if n < MinBatchLength || n > math.MaxInt32-lengthOverhead {
		return 0, fmt.Errorf("%w: batch length %d", ErrCorrupt, n)
	}
	return int(n) + lengthOverhead, nil
}

// Next splits the first batch off b, without looking at the checksum.
func Next(b []byte) (batch Batch, rest []byte, err error) {
	n, err := Peek(b)
	if err != nil {
		return nil, b, err
	}
	if n > len(b) {
		return nil, b, ErrTruncated
	}
	return Batch(b[:n:n]), b[n:], nil
}

// Header fields.
func (b Batch) BaseOffset() int64      { return int64(binary.BigEndian.Uint64(b)) }
func (b Batch) Size() int              { return int(binary.BigEndian.Uint32(b[8:])) + lengthOverhead }
func (b Batch) LeaderEpoch() int32     { return int32(binary.BigEndian.Uint32(b[12:])) }
func (b Batch) CRC() uint32            { return binary.BigEndian.Uint32(b[17:]) }
func (b Batch) Attributes() int16      { return int16(binary.BigEndian.Uint16(b[21:])) }
func (b Batch) LastOffsetDelta() int32 { return int32(binary.BigEndian.Uint32(b[23:])) }
func (b Batch) BaseTimestamp() int64   { return int64(binary.BigEndian.Uint64(b[27:])) }
func (b Batch) MaxTimestamp() int64    { return int64(binary.BigEndian.Uint64(b[35:])) }
func (b Batch) ProducerID() int64      { return int64(binary.BigEndian.Uint64(b[43:])) }
func (b Batch) ProducerEpoch() int16   { return int16(binary.BigEndian.Uint16(b[51:])) }
func (b Batch) BaseSequence() int32    { return int32(binary.BigEndian.Uint32(b[53:])) }
func (b Batch) Count() int32           { return int32(binary.BigEndian.Uint32(b[57:])) }

// LastOffset is the offset of the last record, or of where it was before
// compaction.
func (b Batch) LastOffset() int64 { return b.BaseOffset() + int64(b.LastOffsetDelta()) }

// Codec is the compression codec of the records.
func (b Batch) Codec() Codec { return Codec(b.Attributes() & codecMask) }

// LogAppendTime says that the broker gave the records their timestamp.
func (b Batch) LogAppendTime() bool { return b.Attributes()&timestampTypeBit != 0 }

// Transactional says that the batch belongs to a transaction.
func (b Batch) Transactional() bool { return b.Attributes()&transactionalBit != 0 }

// Control says that the batch holds a control record (a transaction marker).
func (b Batch) Control() bool { return b.Attributes()&controlBit != 0 }

// LastSequence is the sequence of the last record. Sequences wrap from MaxInt32
// to 0.
func (b Batch) LastSequence() int32 { return AddSequence(b.BaseSequence(), b.LastOffsetDelta()) }

// AddSequence adds n to a sequence number, wrapping from MaxInt32 to 0 as
// producers do.
func AddSequence(seq, n int32) int32 {
	if seq > math.MaxInt32-n {
		return n - (math.MaxInt32 - seq) - 1
	}
	return seq + n
}

// SetBaseOffset writes the base offset, which the checksum does not cover.
func (b Batch) SetBaseOffset(o int64) { binary.BigEndian.PutUint64(b, uint64(o)) }

// SetLeaderEpoch writes the leader epoch, which the checksum does not cover.
func (b Batch) SetLeaderEpoch(e int32) { binary.BigEndian.PutUint32(b[12:], uint32(e)) }

// SetLogAppendTime gives all records the timestamp ts, as topics with
// message.timestamp.type=LogAppendTime want, and computes the checksum anew.
func (b Batch) SetLogAppendTime(ts int64) {
	binary.BigEndian.PutUint16(b[21:], uint16(b.Attributes())|timestampTypeBit)
	binary.BigEndian.PutUint64(b[35:], uint64(ts))
	b.seal()
}

func (b Batch) seal() {
	binary.BigEndian.PutUint32(b[17:], crc32.Checksum(b[crcStart:], castagnoli))
}

// ChecksumOK computes the checksum and compares it.
func (b Batch) ChecksumOK() bool { return crc32.Checksum(b[crcStart:], castagnoli) == b.CRC() }

// Check says whether b is one whole batch with sensible header and the right
// checksum, as recovery wants to know it of stored bytes.
func (b Batch) Check() error {
	n, err := Peek(b)
	if err != nil {
		return err
	}
	if len(b) < n {
		return ErrTruncated
	}
	if len(b) > n {
		return fmt.Errorf("%w: %d bytes follow the batch", ErrCorrupt, len(b)-n)
	}
	if !b.ChecksumOK() {
		return fmt.Errorf("%w: checksum does not match", ErrCorrupt)
	}
	if b.LastOffsetDelta() < 0 || b.Count() < 0 {
		return fmt.Errorf("%w: negative record count", ErrCorrupt)
	}
	return nil
}
