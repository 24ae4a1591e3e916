package groupview

import (
	"cmp"
	"context"
	"fmt"
	"time"
)

// Source has the facts that views are made of. It is asked for many groups or
// topics at a time, so that the number of requests behind it does not grow with
// theirs.
type Source interface {
	// Describe returns what is known of groups, by name.
	Describe(ctx context.Context, names []string) (map[string]Description, error)
	// Logs returns where the partitions of topics begin and end. A topic that
	// does not exist is absent. It is asked after Describe: otherwise a commit
	// between the two would seem to be beyond the end.
	Logs(ctx context.Context, topics []string) (map[string]Log, error)
	// FirstTimes returns the timestamps of the first record at or after an offset
	// of each partition, as far as they are found before ctx ends.
	FirstTimes(ctx context.Context, from map[TopicPartition]int64) (map[TopicPartition]time.Time, error)
}

// Description is what a source knows of a group: of Group all but its name, its partitions
// and what is counted over them. If Err is not nil, it is why nothing else is known: a
// NoGroupError if there is no such group.
type Description struct {
	Group
	Committed map[TopicPartition]Commit
	Err       error
}

// Commit is a committed offset. Behind is how many records are left to read, if
// the source has counted them: it must where offsets have gaps, and does not
// need to where they are dense.
type Commit struct {
	Offset int64
	Behind *Count
}

// Count is a number of records, or at least so many.
type Count struct {
	Records int64
	AtLeast bool
}

// Log is where the partitions of a topic begin and end. A partition without a
// leader has no bounds.
type Log struct {
	Partitions int
	Bounds     map[int32]Bounds
}

// Bounds are the log start offset and the high watermark of a partition.
type Bounds struct{ Start, End int64 }

// TopicPartition names a partition.
type TopicPartition struct {
	Topic     string
	Partition int32
}

// Compare orders partitions by topic and number.
func (a TopicPartition) Compare(b TopicPartition) int {
	return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
}

// NoGroupError says that there is no group of that name.
type NoGroupError struct{ Name string }

func (e *NoGroupError) Error() string { return fmt.Sprintf("there is no group %q", e.Name) }
