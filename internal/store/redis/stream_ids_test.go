package redis

import (
	"math"
	"testing"

	"muster/internal/store"
)

// millis returns the offset of a sequence in a millisecond, in layout stream.
func millis(ms, seq int64) int64 { return ms<<defaultBits | seq }

func TestOffsetsAndTheIDsOfGroups(t *testing.T) {
	stream, log := Stream{Layout: store.LayoutStream}, Stream{Layout: store.LayoutLog}
	wide := Stream{Layout: store.LayoutStream, SequenceBits: 20}
	for _, c := range []struct {
		stream Stream
		offset int64
		id     string
	}{
		{stream, 0, "0-0"}, {stream, millis(1, 1), "1-0"}, {stream, millis(1, 0), "0-1023"}, {stream, millis(1700, 6), "1700-5"}, {wide, 7<<20 | 9, "7-8"},
		{log, 0, "0-0"}, {log, 1, "1-0"}, {log, 500, "500-0"}, {log, math.MaxInt64, "9223372036854775807-0"},
	} {
		if id := c.stream.IDBefore(c.offset); id != c.id {
			t.Errorf("offset %d is after %s, not %s", c.offset, id, c.id)
		}
		if offset, err := c.stream.OffsetAfter(c.id); offset != c.offset || err != nil {
			t.Errorf("id %s is before %d, not %d (%v)", c.id, offset, c.offset, err)
		}
	}
	if offset, err := stream.OffsetAfter("1700-18446744073709551615"); offset != millis(1701, 0) || err != nil {
		t.Errorf("the last id of a millisecond is before %d, not %d (%v)", offset, millis(1701, 0), err)
	}
	if offset, err := stream.OffsetAfter("soon"); err == nil {
		t.Errorf("what is no id is before %d", offset)
	}
}
