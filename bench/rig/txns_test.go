package rig

import (
	"encoding/binary"
	"slices"
	"testing"

	"muster/internal/assert"
)

func TestBatchesAreFollowedToTheLastWholeOne(t *testing.T) {
	one, two := NewBatch(3, 64, 1), NewBatch(2, 64, 2)
	binary.BigEndian.PutUint64(two, 3) // its base offset
	both := slices.Concat(one, two)
	for name, c := range map[string]struct {
		b    []byte
		from int64
		next int64
		size int
	}{
		"both":                   {both, 0, 5, len(both)},
		"the second cut short":   {both[:len(both)-1], 0, 3, len(one)},
		"from within the first":  {both, 2, 5, len(both)},
		"not the batch":          {both, 3, 0, 0},
		"a hole":                 {slices.Concat(one, one), 0, 0, 0},
		"nothing":                {nil, 0, 0, 0},
		"the first one is short": {one[:len(one)-1], 0, 0, 0},
	} {
		next, size, err := batchesEnd(c.b, c.from)
		assert.True(t, (err != nil) == (c.size == 0) && next == c.next && size == c.size, "%s: %d, %d, %v", name, next, size, err)
	}
}
