package store

import (
	"time"

	"muster/internal/record"
)

// Compaction says how a log is to be compacted.
type Compaction struct {
	Now             time.Time
	NextOffset      int64         // nothing at or above it is touched
	MinLag          time.Duration // min.compaction.lag.ms
	MaxLag          time.Duration // max.compaction.lag.ms
	MinDirtyRatio   float64       // min.cleanable.dirty.ratio
	DeleteRetention time.Duration // delete.retention.ms: how long tombstones stay
	MaxKeys         int           // how many keys a pass may hold in memory; 0 for the usual
}

// Worth says whether a log of which so many bytes have not been compacted yet
// is to be compacted now; oldest is the timestamp of the oldest record among
// those. It applies min.cleanable.dirty.ratio and max.compaction.lag.ms.
func (c Compaction) Worth(dirty, total, oldest int64) bool {
	return dirty > 0 && (c.Late(oldest) || float64(dirty) >= c.MinDirtyRatio*float64(total))
}

// Late says whether a record must have been compacted by now, as
// max.compaction.lag.ms demands.
func (c Compaction) Late(timestamp int64) bool {
	return c.MaxLag > 0 && timestamp >= 0 && timestamp < c.Now.Add(-c.MaxLag).UnixMilli()
}

// Young says whether a record is too young to be compacted, as
// min.compaction.lag.ms demands.
func (c Compaction) Young(timestamp int64) bool {
	return c.MinLag > 0 && timestamp > c.Now.Add(-c.MinLag).UnixMilli()
}

// The bounds of the memory that one pass takes. What a log has beyond them waits
// for the next pass.
const (
	maxPassKeys  = 2_000_000
	maxPassBytes = 256 << 20
)

// CompactionPass is the rule of compaction in one pass over a log. It is shown
// the keys of all records that have not been compacted yet, with Note, and then
// says of each record from the start of the log on whether it stays.
type CompactionPass struct {
	latest  map[string]int64 // the newest offset of every key
	maxKeys int
	bytes   int     // of those keys
	cleaned Cleaned // by earlier passes
	// dropBefore is the moment at or before which a tombstone must have become
	// clean to go now.
	dropBefore int64
}

// NewCompactionPass begins a pass over a log that has been cleaned so far.
func NewCompactionPass(c Compaction, cleaned Cleaned) *CompactionPass {
	maxKeys := c.MaxKeys
	if maxKeys <= 0 {
		maxKeys = maxPassKeys
	}
	return &CompactionPass{
		latest: map[string]int64{}, maxKeys: maxKeys, cleaned: cleaned,
		dropBefore: c.Now.Add(-c.DeleteRetention).UnixMilli(),
	}
}

// Full says that no more batches may be noted.
func (p *CompactionPass) Full() bool {
	return len(p.latest) >= p.maxKeys || p.bytes >= maxPassBytes
}

// NoteKey takes in the key of a record. Records come in the order of offsets.
func (p *CompactionPass) NoteKey(k *record.Keyed) {
	if !k.HasKey {
		return
	}
	if _, known := p.latest[string(k.Key)]; !known {
		p.bytes += len(k.Key)
	}
	p.latest[string(k.Key)] = k.Offset
}

// Note takes in the keys of a batch. A transaction marker supersedes nothing.
func (p *CompactionPass) Note(b record.Batch) error {
	if b.Control() {
		return nil
	}
	return b.ScanKeys(func(k *record.Keyed) error {
		p.NoteKey(k)
		return nil
	})
}

// Keep decides about one record. Records without key cannot be superseded and
// have no place in a compacted log.
func (p *CompactionPass) Keep(k *record.Keyed) bool {
	if !k.HasKey {
		return false
	}
	if newest, ok := p.latest[string(k.Key)]; ok && newest > k.Offset {
		return false
	}
	if !k.Tombstone {
		return true
	}
	at, seen := p.cleaned.seen(k.Offset)
	return !seen || at > p.dropBefore
}

// Filter returns what remains of the batch, nil if nothing does.
func (p *CompactionPass) Filter(b record.Batch) (record.Batch, error) {
	if b.Control() {
		return b, nil
	}
	return b.Filter(p.Keep)
}
