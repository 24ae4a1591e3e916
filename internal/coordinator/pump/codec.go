package pump

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"muster/internal/machine"
	"muster/internal/record"
)

// controlVersion is the version of a marker's key and value.
const controlVersion = 0

// Types of markers, as their keys have them.
const (
	controlAbort  = 0
	controlCommit = 1
)

// Encode makes the record batch of an append.
func Encode(b *machine.Batch, now time.Time) (record.Batch, error) {
	t := record.PlainTemplate()
	if b.Producer != nil {
		t.ProducerID, t.ProducerEpoch, t.Transactional = b.Producer.ID, b.Producer.Epoch, b.Producer.Transactional
	}
	if b.Control != nil {
		t.Control, t.Transactional = true, true
		return record.Build(t, []record.Record{encodeControl(b.Control, now)})
	}
	recs := make([]record.Record, len(b.Records))
	for i, r := range b.Records {
		recs[i].Key, recs[i].Value = r.Encode()
		recs[i].OffsetDelta, recs[i].Timestamp = int32(i), now.UnixMilli()
	}
	return record.Build(t, recs)
}

func encodeControl(c *machine.Control, now time.Time) record.Record {
	kind := uint16(controlAbort)
	if c.Commit {
		kind = controlCommit
	}
	key := binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, controlVersion), kind)
	value := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint16(nil, controlVersion), uint32(c.CoordinatorEpoch))
	return record.Record{Key: key, Value: value, Timestamp: now.UnixMilli()}
}

// Decode reads a batch for a core's Replay. Records that decode does not know
// are left out; those that it cannot read too, and told by unreadable, since
// losing one of them is better than losing all of the shard.
func Decode(b record.Batch, decode func(key, value []byte) (machine.Record, error), unreadable func(offset int64, err error)) (machine.Stored, error) {
	out := machine.Stored{BaseOffset: b.BaseOffset()}
	if b.ProducerID() != record.NoProducerID {
		out.Producer = &machine.Producer{ID: b.ProducerID(), Epoch: b.ProducerEpoch(), Transactional: b.Transactional()}
	}
	if b.Control() {
		err := b.Each(func(r *record.Record) (err error) {
			out.Control, err = decodeControl(r.Key, r.Value)
			return err
		})
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

// decodeControl reads a marker; nil is one of a kind that we do not know.
func decodeControl(key, value []byte) (*machine.Control, error) {
	if len(key) < 4 {
		return nil, fmt.Errorf("control record with a key of %d bytes", len(key))
	}
	kind := binary.BigEndian.Uint16(key[2:])
	if kind != controlAbort && kind != controlCommit {
		return nil, nil
	}
	if len(value) < 6 {
		return nil, fmt.Errorf("transaction marker with a value of %d bytes", len(value))
	}
	return &machine.Control{Commit: kind == controlCommit, CoordinatorEpoch: int32(binary.BigEndian.Uint32(value[2:]))}, nil
}
