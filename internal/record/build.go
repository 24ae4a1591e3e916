package record

import "fmt"

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
	size := HeaderSize
	for i := range recs {
		size += Size(&recs[i], recs[0].Timestamp)
	}
	w := NewWriter(make([]byte, 0, size), t)
	for i := range recs {
		w.Add(&recs[i])
	}
	packed, err := compress(t.Codec, w.out[HeaderSize:])
	if err != nil {
		return nil, fmt.Errorf("pack with %s: %w", t.Codec, err)
	}
	if t.Codec != None {
		w.out = append(make([]byte, HeaderSize, HeaderSize+len(packed)), packed...)
	}
	return w.Finish(), nil
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
