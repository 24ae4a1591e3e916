package record

import (
	"encoding/binary"
	"fmt"
)

// Marker is a control record that ends a producer's transaction.
type Marker struct {
	Commit           bool
	CoordinatorEpoch int32
}

// markerVersion is the version of a marker's key and value.
const markerVersion = 0

// Types of markers, as their keys have them.
const (
	markerAbort  = 0
	markerCommit = 1
)

// BuildMarker makes the control batch of a marker.
func BuildMarker(producerID int64, producerEpoch int16, m Marker, timestamp int64) (Batch, error) {
	kind := uint16(markerAbort)
	if m.Commit {
		kind = markerCommit
	}
	t := PlainTemplate()
	t.Control, t.Transactional, t.ProducerID, t.ProducerEpoch = true, true, producerID, producerEpoch
	key := binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, markerVersion), kind)
	value := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint16(nil, markerVersion), uint32(m.CoordinatorEpoch))
	return Build(t, []Record{{Key: key, Value: value, Timestamp: timestamp}})
}

// Marker returns the marker that a control batch holds; false says that it is of
// a kind that we do not know, or that compaction has emptied the batch.
func (b Batch) Marker() (m Marker, ok bool, err error) {
	err = b.Each(func(r *Record) error {
		if len(r.Key) < 4 {
			return fmt.Errorf("%w: control record with a key of %d bytes", ErrCorrupt, len(r.Key))
		}
		kind := binary.BigEndian.Uint16(r.Key[2:])
		if kind != markerAbort && kind != markerCommit {
			return nil
		}
		if len(r.Value) < 6 {
			return fmt.Errorf("%w: transaction marker with a value of %d bytes", ErrCorrupt, len(r.Value))
		}
		m, ok = Marker{Commit: kind == markerCommit, CoordinatorEpoch: int32(binary.BigEndian.Uint32(r.Value[2:]))}, true
		return nil
	})
	return m, ok, err
}
