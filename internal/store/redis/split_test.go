package redis

import (
	"encoding/binary"
	"testing"

	"muster/internal/assert"
	"muster/internal/record"
)

// Whatever a batch unpacks to, its entries hold no more than the append was given for them.
func TestEntriesHoldNoMoreThanTheyAreGiven(t *testing.T) {
	b := &bed{T: t}
	for _, c := range []struct {
		codec                  record.Codec
		records, size, headers int
	}{{record.None, 3, 10, 500}, {record.None, 200, 10, 0}, {record.ZSTD, 3, 10, 500}, {record.ZSTD, 200, 10, 0}, {record.ZSTD, 50, 1000, 20}, {record.ZSTD, 1, 1 << 20, 0}} {
		batch := b.bomb(c.codec, c.records, c.size, make([]record.Header, c.headers)...)
		fit := 0
		for limit := int64(1 << 10); limit < 8<<20; limit += limit / 16 {
			p := &pending{batch: batch}
			if err := p.encode(limit, newMemory()); err != nil {
				assert.ErrorIs(t, err, errMore, "%+v: with %d bytes", c, limit)
				continue
			}
			fit++
			held := int64(c.records)*recordMemory + int64(len(p.words))*wordMemory + int64(cap(p.unpacked))
			assert.True(t, held <= limit && len(p.ends) == c.records, "%+v: %d entries hold %d bytes of %d", c, len(p.ends), held, limit)
		}
		assert.True(t, fit > 0, "%+v: it never fits", c)
	}
}

// A batch that does not fit into what was guessed is refused only if it does not fit into all that
// one append may hold either.
func TestABatchMayTakeAllThatOneAppendMayHold(t *testing.T) {
	b := &bed{T: t}
	l := &log{store: &Store{memory: newMemory()}}
	const guessed = maxEntries/growth/(recordMemory+usualWords*wordMemory) + 1 // records
	p := &pending{batch: b.bomb(record.None, guessed, 0, make([]record.Header, 2)...)}
	assert.MustTrue(t, p.estimate() >= maxEntries/growth && p.estimate() < maxEntries, "the guess is %d", p.estimate())
	assert.True(t, l.split(p, true) && len(p.ends) == guessed, "%d of %d are split", len(p.ends), guessed)
	assert.NoError(t, p.err)
	assert.Equal(t, p.memory, maxEntries, "bytes that it holds")
	l.drop(p)
	assert.Equal(t, l.store.memory.free, entryMemory, "bytes that are free")
}

// Entries have offsets without gaps, so a batch whose records leave some out is refused, wherever
// that is.
func TestABatchWithGapsHasNoEntries(t *testing.T) {
	for name, deltas := range map[string][]int32{"at first": {1, 2, 2}, "between": {0, 2, 2}, "at last": {0, 1, 3}, "none": {0, 1, 1}} {
		batch, err := record.Build(record.PlainTemplate(), []record.Record{{OffsetDelta: deltas[0]}, {OffsetDelta: deltas[1]}})
		assert.Must(t, err)
		binary.BigEndian.PutUint32(batch[23:], uint32(deltas[2])) // its last offset delta
		assert.MustEqual(t, batch.LastOffsetDelta(), deltas[2])
		err = (&pending{batch: batch}).encode(1<<20, newMemory())
		if name == "none" {
			assert.NoError(t, err)
			continue
		}
		assert.ErrorIs(t, err, errOffsetDeltas, "%s", name)
	}
}
