package store

import "context"

// Checker is a Store that can look whether its logs are what they should be, while they are
// being written, whoever leads them.
type Checker interface {
	Store
	// Check looks at a part of a log, from an offset on, and says where the next part begins.
	Check(ctx context.Context, tp TopicPartition, from int64) (Checked, error)
}

// Lengths is a Store that knows how many records its logs have, where the difference of offsets need not
// tell.
type Lengths interface {
	Store
	// Lengths counts the records of logs, whoever leads them; negative where it does not know.
	Lengths(ctx context.Context, logs []TopicPartition) ([]int64, error)
}

// Checked is what was found in a part of a log.
type Checked struct {
	Layout Layout // empty if there is no log yet
	// Unable says why a log of this layout cannot be checked, for people; empty if it was. The rest is not filled
	// then.
	Unable string
	// Start and End are the bounds of the log as of this part, Next where the part ends:
	// at End, or where to go on.
	Start, End, Next int64
	Records          int64 // that are there
	Deleted          int64 // that have an offset and are not there any more
	Wrong            []string
}
