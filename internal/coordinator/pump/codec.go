package pump

import (
	"errors"
	"time"

	"muster/internal/machine"
	"muster/internal/record"
)

// Encode makes the record batch of an append.
func Encode(b *machine.Batch, now time.Time) (record.Batch, error) {
	t := record.PlainTemplate()
	if b.Producer != nil {
		t.ProducerID, t.ProducerEpoch, t.Transactional = b.Producer.ID, b.Producer.Epoch, b.Producer.Transactional
	}
	if b.Control != nil {
		return record.BuildMarker(t.ProducerID, t.ProducerEpoch, record.Marker(*b.Control), now.UnixMilli())
	}
	recs := make([]record.Record, len(b.Records))
	for i, r := range b.Records {
		recs[i].Key, recs[i].Value = r.Encode()
		recs[i].OffsetDelta, recs[i].Timestamp = int32(i), now.UnixMilli()
	}
	return record.Build(t, recs)
}

// Decode reads a batch for a core's Replay. Records that decode does not know
// are left out; those that it cannot read too, and told by unreadable, since
// losing one of them is better than losing all of the shard.
func Decode(b record.Batch, decode func(key, value []byte) (machine.Record, error), unreadable func(offset int64, err error)) (machine.Stored, error) {
	return DecodeInto(nil, b, decode, unreadable)
}

// DecodeInto is Decode with a list for the records that is used again: a load reads
// many batches, one after the other.
func DecodeInto(list []machine.StoredRecord, b record.Batch, decode func(key, value []byte) (machine.Record, error), unreadable func(offset int64, err error)) (machine.Stored, error) {
	out := machine.Stored{BaseOffset: b.BaseOffset(), Records: list[:0]}
	if b.ProducerID() != record.NoProducerID {
		out.Producer = &machine.Producer{ID: b.ProducerID(), Epoch: b.ProducerEpoch(), Transactional: b.Transactional()}
	}
	if b.Control() {
		m, ok, err := b.Marker()
		if ok {
			out.Control = (*machine.Control)(&m)
		}
		return out, err
	}
	err := b.Each(func(r *record.Record) error {
		rec, err := decode(r.Key, r.Value)
		switch {
		case errors.Is(err, machine.ErrUnknownRecord):
		case err != nil:
			unreadable(r.Offset, err)
		default:
			out.Records = append(out.Records, machine.StoredRecord{Offset: r.Offset, Record: rec})
		}
		return nil
	})
	return out, err
}
