package lag

import (
	"cmp"
	"slices"
	"sort"
	"time"
)

// Log is a partition as its leader sees it. Logs are handed in before groups: a commit
// in between is at most beyond the end, and the lag 0.
type Log struct {
	Topic     string
	ID        [16]byte // Of the topic: one that was deleted and created again has another.
	Partition int32
	Offline   bool // It has no leader, so nothing of the rest is known.
	Bounds
	LastStable int64 // What readers of committed records may read up to; None if that is not known.
	Added      int64 // How many records were ever appended. Where offsets are dense, that is End.
	Tail       int32 // How many offsets at the end are of nothing to read: the ends of transactions, and what was aborted.
	TimeBits   uint8 // Of layout stream: by how many bits an offset is shifted to be a time in milliseconds.
	Retention
}

// Owner says whether a member has a partition.
type Owner uint8

// OwnerUnknown is while the group rebalances, and if its members are no consumers.
const (
	OwnerUnknown Owner = iota
	OwnerNone
	OwnerMember
)

// Position is where a group is in a partition.
type Position struct {
	Topic       string
	Partition   int32
	Committed   int64     // None if it has not committed.
	CommittedAt time.Time // When it last did, be it the same offset; zero if that is not known.
	Behind      *Count    // The number of records from there on, which layout stream needs.
	Owner       Owner
	Fetched     time.Time // When its owner last fetched it, by client id and host; zero for never.
}

// Group is a group as its coordinator sees it.
type Group struct {
	Name      string
	Members   int
	Positions []Position // In order of topic and partition. Those it would read, too.
	Deaths    []Death    // Of members, since the last pass.
}

func (p *Position) compare(q *Position) int {
	return cmp.Or(cmp.Compare(p.Topic, q.Topic), cmp.Compare(p.Partition, q.Partition))
}

// inOrder sorts positions that are not, and leaves out what is there twice.
func inOrder(ps []Position) []Position {
	for i := 1; i < len(ps); i++ {
		if ps[i-1].compare(&ps[i]) >= 0 {
			ps = slices.Clone(ps)
			sort.SliceStable(ps, func(i, j int) bool { return ps[i].compare(&ps[j]) < 0 })
			return slices.CompactFunc(ps, func(a, b Position) bool { return a.compare(&b) == 0 })
		}
	}
	return ps
}

// key names a partition.
type key struct {
	topic     string
	partition int32
}

// log is what is kept of a partition.
type log struct {
	Log
	table   table
	counted int32  // Points that are in the tracker's bytes.
	pass    uint32 // In which it was last seen.
	seenAt  tick
	began   uint32 // The pass in which it was first seen, or was another log than before.
	moved   uint32 // The pass in which it was last another than in the pass before.
	trimmed uint32 // The pass in which it last began at another offset than in the pass before.
	grown   int64  // How many records were appended since the last pass.
	hole    Bounds // The last tail that records came after.
	users   int32  // Positions in it.
	dropped bool
}

// set takes in what is known now. A log of another topic, or that ends before where it
// ended, is another one of the same name.
func (l *log) set(facts Log, pass uint32, now tick) {
	if facts.Offline { // What was known stays, to be compared later.
		facts.Bounds, facts.Added = l.Bounds, l.Added
	}
	fresh := l.pass == 0 || facts.ID != l.ID || facts.End < l.End
	l.grown = 0
	if !fresh {
		l.grown = max(facts.Added-l.Added, 0)
	}
	switch {
	case fresh:
		l.hole = Bounds{}
	case l.Tail > 0 && facts.End > l.End:
		l.hole = Bounds{l.End - int64(l.Tail), l.End}
	}
	if fresh || facts != l.Log {
		l.moved = pass
	}
	if facts.Start != l.Start {
		l.trimmed = pass
	}
	l.Log, l.pass, l.seenAt = facts, pass, now
	if fresh {
		l.began, l.table.points = pass, l.table.points[:0]
	}
}

// beyondHole is the first offset from one on that may be a record's.
func (l *log) beyondHole(offset int64) int64 {
	if offset >= l.hole.Start && offset < l.hole.End {
		return l.hole.End
	}
	return offset
}

// behind is the lag of a committed offset, if it is known. A difference of offsets is
// no number of records in layout stream.
func (l *log) behind(committed int64, counted *Count) (Count, bool) {
	c := Of(committed, l.Bounds, counted)
	return c, counted != nil || l.TimeBits == 0 || c.Records == 0
}
