// Package lag knows how far groups are behind, in records and in seconds, now and
// over time, and what that says of them.
//
//	every 10 s:  Begin(now) → Log, for each partition → Group, for each group → End
//	             tables of end offsets · rings of lag · rates · verdicts
//	at any time: Groups, Partitions, History, PartitionHistory, Changes
//
// A Tracker owns what is kept of groups and partitions between passes, within a
// number of bytes that it counts. What is read at one moment is computed from one
// pass, so lag is never negative, and is there during rebalances too.
//
// The package is pure: it is told the time, and asks no one but Records, which it
// is handed, and that seldom. Whoever has a Tracker sees to it that one goroutine
// at a time uses it. What it says is data; the sentences are made in package explain.
//
//	lag         = max(high watermark − max(committed offset, log start offset), 0)
//	lag seconds = now − when the first unread record was appended, 0 without lag
//
// Where offsets are not dense (layout stream), the number of records comes from
// outside. A partition without a committed offset has no lag, as in Kafka's tools.
package lag

import "math"

// None is a committed offset that is not there.
const None int64 = -1

// Bounds are the log start offset and the high watermark of a partition, read at
// one moment.
type Bounds struct{ Start, End int64 }

// Count is a number of records. It is approximate if some were estimated, or if
// counting ended early.
type Count struct {
	Records     int64
	Approximate bool
}

// Next is the offset that a group reads next. What was deleted is not there to read.
func Next(committed int64, b Bounds) int64 { return max(committed, b.Start) }

// Of returns the lag of a group that has committed an offset. Where offsets have
// gaps, counted is the number of records from there on. A count is taken a moment
// earlier or later than the bounds: if these say that nothing is left, they are right.
func Of(committed int64, b Bounds, counted *Count) Count {
	left := b.End - Next(committed, b)
	switch {
	case left <= 0:
		return Count{}
	case counted != nil:
		return Count{max(counted.Records, 0), counted.Approximate}
	}
	return Count{Records: left}
}

// Total is the lag of a group over its partitions.
type Total struct {
	Lag         int64
	Approximate bool  // A part of it is.
	Max         int64 // Of one partition.
	Unknown     bool  // A partition has no leader, so no one knows how far it goes.
	Uncommitted int   // Partitions without a committed offset. They are not in the lag.
	Partitions  int   // Those with one.
}

// add counts a partition that has a committed offset and a log.
func (t *Total) add(c Count) {
	t.Lag = sum(t.Lag, c.Records)
	t.Max = max(t.Max, c.Records)
	t.Approximate = t.Approximate || c.Approximate
}

// sum adds numbers that are not negative. Hostile ones stay the largest that there is.
func sum(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
