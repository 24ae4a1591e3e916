package record

import (
	"encoding/binary"
	"fmt"
)

// Template holds the header fields that a new batch takes over.
type Template struct {
	BaseOffset    int64
	LeaderEpoch   int32
	Codec         Codec
	LogAppendTime bool
	Transactional bool
	Control       bool
	ProducerID    int64
	ProducerEpoch int16
	BaseSequence  int32
	// LastOffsetDelta is used when it is larger than the last record's: a
	// compacted batch keeps the range it had.
	LastOffsetDelta int32
	// MaxTimestamp is used when there are no records.
	MaxTimestamp int64
}

// PlainTemplate is the template of a batch without producer.
func PlainTemplate() Template {
	return Template{ProducerID: NoProducerID, ProducerEpoch: -1, BaseSequence: -1, LeaderEpoch: -1, MaxTimestamp: NoTimestamp}
}

// TemplateOf returns the template that keeps b's identity, for writing some of
// its records into a new batch.
func TemplateOf(b Batch) Template {
	return Template{
		BaseOffset: b.BaseOffset(), LeaderEpoch: b.LeaderEpoch(), Codec: b.Codec(),
		LogAppendTime: b.LogAppendTime(), Transactional: b.Transactional(), Control: b.Control(),
		ProducerID: b.ProducerID(), ProducerEpoch: b.ProducerEpoch(), BaseSequence: b.BaseSequence(),
		LastOffsetDelta: b.LastOffsetDelta(), MaxTimestamp: b.MaxTimestamp(),
	}
}

// Build makes a batch. The records' OffsetDelta and Timestamp are used, their
// Offset is not.
func Build(t Template, recs []Record) (Batch, error) {
	var base, maxTS int64 = t.MaxTimestamp, t.MaxTimestamp
	if len(recs) > 0 {
		base, maxTS = recs[0].Timestamp, recs[0].Timestamp
	}
	var body []byte
	last := t.LastOffsetDelta
	for i := range recs {
		body = appendRecord(body, &recs[i], base)
		maxTS = max(maxTS, recs[i].Timestamp)
		last = max(last, recs[i].OffsetDelta)
	}
	packed, err := compress(t.Codec, body)
	if err != nil {
		return nil, fmt.Errorf("pack with %s: %w", t.Codec, err)
	}
	b := make(Batch, HeaderSize, HeaderSize+len(packed))
	b.SetBaseOffset(t.BaseOffset)
	binary.BigEndian.PutUint32(b[8:], uint32(HeaderSize-lengthOverhead+len(packed)))
	b.SetLeaderEpoch(t.LeaderEpoch)
	b[16] = 2
	binary.BigEndian.PutUint16(b[21:], t.attributes())
	binary.BigEndian.PutUint32(b[23:], uint32(last))
	binary.BigEndian.PutUint64(b[27:], uint64(base))
	binary.BigEndian.PutUint64(b[35:], uint64(maxTS))
	binary.BigEndian.PutUint64(b[43:], uint64(t.ProducerID))
	binary.BigEndian.PutUint16(b[51:], uint16(t.ProducerEpoch))
	binary.BigEndian.PutUint32(b[53:], uint32(t.BaseSequence))
	binary.BigEndian.PutUint32(b[57:], uint32(len(recs)))
	b = append(b, packed...)
	b.seal()
	return b, nil
}

func (t *Template) attributes() uint16 {
	a := uint16(t.Codec) & codecMask
	if t.LogAppendTime {
		a |= timestampTypeBit
	}
	if t.Transactional {
		a |= transactionalBit
	}
	if t.Control {
		a |= controlBit
	}
	return a
}

func appendRecord(dst []byte, r *Record, baseTimestamp int64) []byte {
	body := make([]byte, 1, 32+len(r.Key)+len(r.Value))
	body = binary.AppendVarint(body, r.Timestamp-baseTimestamp)
	body = binary.AppendVarint(body, int64(r.OffsetDelta))
	body = appendNullable(body, r.Key)
	body = appendNullable(body, r.Value)
	body = binary.AppendVarint(body, int64(len(r.Headers)))
	for _, h := range r.Headers {
		body = binary.AppendVarint(body, int64(len(h.Key)))
		body = append(body, h.Key...)
		body = appendNullable(body, h.Value)
	}
	dst = binary.AppendVarint(dst, int64(len(body)))
	return append(dst, body...)
}

func appendNullable(dst, b []byte) []byte {
	if b == nil {
		return binary.AppendVarint(dst, -1)
	}
	dst = binary.AppendVarint(dst, int64(len(b)))
	return append(dst, b...)
}
