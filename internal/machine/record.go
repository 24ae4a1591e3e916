package machine

// Record is a record of the core's log. A core has a Go type for each kind of
// key that it writes.
type Record interface {
	// Encode returns key and value; the value of a tombstone is nil.
	Encode() (key, value []byte)
	// Size returns how many bytes key and value have, or a few more.
	Size() int
}

// RecordOverhead is how many bytes a record takes in a batch beyond its key and
// value, at most: five numbers of variable length, and the attributes.
const RecordOverhead = 5*5 + 10 + 1

// Producer is on whose behalf a batch is written.
type Producer struct {
	ID            int64
	Epoch         int16
	Transactional bool
}

// Batch is records to append.
type Batch struct {
	Records []Record
	// Whole says that the records are one record batch, and nothing else is in
	// it. Batches with a producer always are.
	Whole    bool
	Producer *Producer // nil for none
	// Control makes the batch a transaction marker of the producer. It has no
	// other records.
	Control *Control
	// Tag, if it is not zero, has the core told by Appended where the first
	// record is once it is durable.
	Tag uint64
}

// Stored is a batch as it was read from the log.
type Stored struct {
	BaseOffset int64
	Producer   *Producer // nil for none
	Records    []StoredRecord
	// Control is set, and Records empty, for a transaction marker.
	Control *Control
}

// StoredRecord is a record with its offset.
type StoredRecord struct {
	Offset int64
	Record Record
}

// Control is a transaction marker: it ends the producer's transaction.
type Control struct {
	Commit           bool
	CoordinatorEpoch int32
}

// Size returns how many bytes a batch's records take.
func (b *Batch) Size() int {
	n := 0
	for _, r := range b.Records {
		n += RecordOverhead + r.Size()
	}
	return n
}
