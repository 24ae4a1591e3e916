// Package history is the form of the records of __group_history: where groups were,
// over restarts. It owns the bytes and nothing else: what is written and when, and what
// is made of it, is decided elsewhere.
//
// A record says of some groups of a shard, as of one moment, which committed offsets
// have changed since the record before, and how far the groups were behind then. Some
// records have all committed offsets, so that whoever asks where a group was need not
// read everything.
//
//	version 0:  byte version · byte flags · varint time, in ms · groups until the end
//	group:      name · varint lag · varint age, in ms · varint number of topics · topics
//	topic:      name · varint number of positions · positions
//	position:   varint partition, less the one before, less 1 · varint committed offset,
//	            zigzag, less that of the partition before
//	name:       varint length shared with the name before · varint length of the rest · rest
//
// Groups, topics and partitions are in order, which makes a position about six bytes.
// A position of which the offset is gone has Gone.
package history

import "errors"

// Limits of a record. Names share what they begin with, so a short record could
// stand for long ones: what they come to is limited too.
const (
	MaxBytes = 512 << 10
	MaxNames = 4 << 20
)

// Gone is the committed offset of a position that has none any more.
const Gone int64 = -1

// version is what is written.
const version = 0

// whole is the flag of records that have all positions of their groups.
const whole = 1

// Record is a record.
type Record struct {
	Time   int64 // In milliseconds since 1970.
	Whole  bool  // It has all positions of its groups, and not only those that have changed.
	Groups []Group
}

// Group is a group in a record.
type Group struct {
	Name   string
	Lag    int64 // In records.
	Age    int64 // Of the oldest first unread record, in milliseconds.
	Topics []Topic
}

// Topic is the positions of a group in a topic.
type Topic struct {
	Name      string
	Positions []Position
}

// Position is where a group was in a partition.
type Position struct {
	Partition int32
	Committed int64
}

// What is wrong with bytes.
var (
	ErrVersion = errors.New("a version of the group history that this broker does not know")
	ErrInvalid = errors.New("no record of the group history")
	ErrTooLong = errors.New("a record of the group history that is too long")
)

// A group that was deleted stands in a record by itself, with one topic that has no name
// and one position that is gone: another group of the same name has no part in its past.

// DeletedGroup is how a record says that a group was deleted.
func DeletedGroup(name string) Group {
	return Group{Name: name, Topics: []Topic{{Positions: []Position{{Committed: Gone}}}}}
}

// Deleted says whether the group was deleted then.
func (g *Group) Deleted() bool {
	return len(g.Topics) == 1 && g.Topics[0].Name == "" && len(g.Topics[0].Positions) == 1 && g.Topics[0].Positions[0] == Position{Committed: Gone}
}
