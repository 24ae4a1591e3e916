package record

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Record is one record of a batch. Key, Value and headers point into the
// batch's unpacked bytes; a nil key or value is null, an empty one is empty.
type Record struct {
	Offset      int64
	OffsetDelta int32
	Timestamp   int64
	Key         []byte
	Value       []byte
	Headers     []Header
}

// Header is a record header.
type Header struct {
	Key   string
	Value []byte
}

// Tombstone says that the record deletes its key.
func (r *Record) Tombstone() bool { return r.Value == nil }

// Each unpacks the batch and calls fn with every record in order. fn must not
// keep the record, only what it points to. It stops at fn's first error.
func (b Batch) Each(fn func(*Record) error) error {
	src, err := decompress(b.Codec(), b[HeaderSize:])
	if err != nil {
		return fmt.Errorf("%w: unpack %s: %w", ErrCorrupt, b.Codec(), err)
	}
	return b.EachIn(src, fn)
}

// EachIn is Each of a batch whose records Unpack has unpacked.
func (b Batch) EachIn(src []byte, fn func(*Record) error) error {
	var rec Record
	for i := range b.Count() {
		d := decoder{b: src}
		size := d.varint()
		body := d.bytes(size)
		if d.bad || size < 0 {
			return fmt.Errorf("%w: record %d", ErrCorrupt, i)
		}
		if err := b.decodeRecord(body, &rec); err != nil {
			return fmt.Errorf("record %d: %w", i, err)
		}
		if err := fn(&rec); err != nil {
			return err
		}
		src = d.b
	}
	if len(src) != 0 {
		return fmt.Errorf("%w: %d bytes follow the last record", ErrCorrupt, len(src))
	}
	return nil
}

func (b Batch) decodeRecord(body []byte, rec *Record) error {
	d := decoder{b: body}
	d.bytes(1) // Record attributes, unused in v2.
	ts := d.varint()
	delta := d.varint()
	rec.Key = d.nullable()
	rec.Value = d.nullable()
	n := d.varint()
	// A header takes two bytes at least, which bounds what a lying count can
	// make us allocate.
	if d.bad || n < 0 || n > int64(len(d.b)) || delta < 0 || delta > int64(b.LastOffsetDelta()) {
		return ErrCorrupt
	}
	rec.Headers = nil
	for range n {
		key := d.bytes(d.varint())
		rec.Headers = append(rec.Headers, Header{Key: string(key), Value: d.nullable()})
		if d.bad {
			return ErrCorrupt
		}
	}
	if d.bad || len(d.b) != 0 {
		return ErrCorrupt
	}
	rec.OffsetDelta = int32(delta)
	rec.Offset = b.BaseOffset() + delta
	rec.Timestamp = b.BaseTimestamp() + ts
	if b.LogAppendTime() {
		rec.Timestamp = b.MaxTimestamp()
	}
	return nil
}

// decoder reads the primitive types of records; after the first failure bad
// is set and everything is empty.
type decoder struct {
	b   []byte
	bad bool
}

func (d *decoder) varint() int64 {
	v, n := binary.Varint(d.b)
	if n <= 0 || v > math.MaxInt64/2 || v < math.MinInt64/2 {
		d.bad, d.b = true, nil
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) bytes(n int64) []byte {
	if n < 0 || n > int64(len(d.b)) {
		d.bad, d.b = true, nil
		return nil
	}
	v := d.b[:n:n]
	d.b = d.b[n:]
	return v
}

func (d *decoder) nullable() []byte {
	n := d.varint()
	if d.bad || n == -1 {
		return nil
	}
	return d.bytes(n)
}
