package record

import (
	"encoding/binary"
	"slices"
)

// Emptied returns the batch without its records, as compaction leaves it where the
// producer's sequence must be found again. Its offsets, sequences and timestamps
// are those that it had.
func (b Batch) Emptied() Batch {
	e := slices.Clone(b[:HeaderSize])
	binary.BigEndian.PutUint32(e[8:], MinBatchLength)
	binary.BigEndian.PutUint16(e[21:], uint16(b.Attributes())&^codecMask)
	binary.BigEndian.PutUint32(e[57:], 0)
	e.seal()
	return e
}
