// Package watch knows how the groups and the topics of this broker are, as of a
// moment ago.
//
//	every 10 s:  a pass asks the broker for its partitions and groups, hands what it is
//	             told to a lag.Tracker, and publishes a Snapshot
//	at any time: Snapshot, which costs nothing; Read, for what the tracker keeps over time
//
// One goroutine makes the passes. A Snapshot never changes and may be read by many, so
// lists, metrics and pages all show one moment, and none of them asks the engines. The
// facts come through small interfaces that the broker implements; nothing here
// decides about a group.
package watch

import (
	"time"

	"muster/internal/watch/list"
)

// Interval is between two passes.
const Interval = 10 * time.Second

// Snapshot is what one pass has seen. No one may change it.
type Snapshot struct {
	At     time.Time // When the pass began; zero before the first.
	Node   int32
	Groups *list.Index // The groups that this broker coordinates.
	Topics []Topic     // All topics of the image, in order of name.
}

// Topic is a topic of the image.
type Topic struct {
	Name       string
	ID         [16]byte
	Internal   bool
	Partitions []Partition
}

// Partition is a partition of a topic.
type Partition struct {
	Number int32
	Leader int32 // -1 if there is none.
	Here   bool  // This broker leads it, and the rest is known.
	Start  int64
	End    int64 // The high watermark.
	// LastStable is what readers of committed records may read up to.
	LastStable int64
	Bytes      int64
	Dense      bool // False on layout stream: there a difference of offsets is no number of records.
}
