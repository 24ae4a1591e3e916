package watch

import (
	"context"
	"time"

	"muster/internal/metadata"
	"muster/internal/watch/lag"
	"muster/internal/watch/list"
)

// Source is the broker as a watch asks it. Calls come one at a time.
type Source interface {
	lag.Records
	// Image returns the newest metadata, nil before there is any.
	Image() *metadata.Image
	// Prepare does what takes a network before partitions are looked at, such as to ask
	// a store that others write to where its logs end.
	Prepare(ctx context.Context)
	// Log looks at a partition that this broker leads; false if it cannot be served.
	Log(t *metadata.Topic, partition int32) (Log, bool)
	// TimeBits says by how many bits the offsets of a topic are shifted to be a time, 0
	// where they are dense.
	TimeBits(t *metadata.Topic) uint8
	// Elsewhere asks the leaders of partitions that other brokers lead, one request for
	// each broker. Answers are in the order of the questions.
	Elsewhere(ctx context.Context, questions []Question) []Answer
	// Groups hands over the groups that this broker coordinates, some at a time. Whoever
	// takes them must not keep them; what take sets as Seen the source keeps, and gives
	// with the group in the next pass. quiet says of groups that have it how Quiet they
	// are. One that is not Loud, and that is as it was in the pass before, may be handed
	// over with Same instead of its facts.
	Groups(ctx context.Context, image *metadata.Image, quiet, take func([]Group))
	// Count counts the records from places on, where offsets are not dense; nil where
	// no one knows. It ends early if it takes long.
	Count(ctx context.Context, places []PartitionOffset) []*lag.Count
	// Fetched says when a client last fetched a partition that this broker leads.
	Fetched(r Reader, topic string, partition int32) Fetched
}

// Log is a partition as its leader sees it.
type Log struct {
	Start, End, LastStable, Bytes int64
	Tail                          int64 // How many offsets at the end are of nothing to read.
}

// Reader is who fetches: members are known by the same.
type Reader struct{ ClientID, Host string }

// PartitionOffset is an offset in a partition.
type PartitionOffset struct {
	Topic     string
	Partition int32
	Offset    int64
}

// Question asks for a partition that another broker leads, and when some last fetched it.
type Question struct {
	Topic     string
	Partition int32
	Leader    int32
	Readers   []Reader
}

// Answer is what the leader said; nothing is known if it has not.
type Answer struct {
	Known bool
	Log
	Fetched []Fetched // By the readers.
}

// Fetched is when someone last fetched a partition.
type Fetched struct {
	At    time.Time // Zero for never.
	Known bool
}

// Group is a group as its coordinator sees it.
type Group struct {
	// Row has its name, and what lists show of a group as its coordinator says it. The watch
	// fills in the rest.
	Row     list.GroupRow
	Members []Member
	Topics  []string  // That members subscribe to, in order; each once.
	Offsets []Offset  // In order of topic and partition.
	Seen    *Seen     // What the watch keeps of it; nil if that is not known.
	Quiet   lag.Quiet // Whether it must be looked at.
	Same    bool      // It is as it was, and but for its name and the two above nothing is told.
	// Tells says that what members have is known: it is not while a classic group
	// rebalances, and if its members are no consumers.
	Tells bool
}

// Member is a member with what it has, in any order.
type Member struct {
	Reader
	Parts []Part
}

// Part is a partition.
type Part struct {
	Topic     string
	Partition int32
}

// Offset is a committed offset.
type Offset struct {
	Part
	Committed int64
	At        time.Time // When it was committed.
}
