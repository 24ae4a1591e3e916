package store

import "time"

// Compaction says how a log is to be compacted.
type Compaction struct {
	Now time.Time
	// NextOffset is where it stops: nothing at or above it is touched. It is at most
	// the last stable offset, so that every transaction below it has ended.
	NextOffset      int64
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
