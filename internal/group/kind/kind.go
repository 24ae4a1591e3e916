// Package kind is what a kind of group is to the shard, and what it is given to work with.
//
// Group is what the shard asks of any group. Base is what all of them have: offsets, and
// which members were silent since a load. Step is the one call of the shard's Step under
// way: the time, the image of the cluster and the request that came in, and the records,
// replies, timers and journal entries that go out. It knows no kind of group; each is a
// package above this one, and a line in the registry of package group.
package kind

import (
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/schema"
	"muster/internal/group/subscription"
	"muster/internal/journal"
	"muster/internal/machine"
)

// Group is what a shard asks of a group, of whatever kind it is.
type Group interface {
	// Common is what groups of all kinds have.
	Common() *Base
	// Kind is Kafka's name of the group's type.
	Kind() schema.Kind
	// ProtocolName is the protocol type of its members, by which clients list it.
	ProtocolName() string
	// StateName is Kafka's name of the group's state.
	StateName() string
	// IsEmpty says that it has no members.
	IsEmpty() bool
	// HadMembers says that offsets which are committed while it is empty are a reset.
	HadMembers() bool
	// Weight is how many bytes members, and those who are about to become one, have made
	// the group hold.
	Weight() int64

	// Replay applies a record of its kind, and isGone says that none is left.
	Replay(r schema.Record)
	IsGone() bool
	// EachRecord gives all its records, but not those that any group may have.
	EachRecord(put func(machine.Record))

	// Loaded brings it to life after its records were replayed.
	Loaded(x *Step)
	// Fired handles a timer of the group, unless it has been replaced or cancelled since.
	Fired(x *Step, e machine.TimerFired)
	// DeleteRecords removes all its records. It is empty.
	DeleteRecords(x *Step)

	// checkCommit, checkTxnCommit and checkFetch say whether a client may commit offsets, or
	// fetch them as a member.
	CheckCommit(x *Step, r *machine.Request, m *kmsg.OffsetCommitRequest) *kerr.Error
	CheckTxnCommit(x *Step, r *machine.Request, m *kmsg.TxnOffsetCommitRequest) *kerr.Error
	CheckFetch(m *kmsg.OffsetFetchRequestGroup) *kerr.Error
	// InUse says of which topics offsets may not be deleted, or that none may.
	InUse() (subscribed func(topic string) bool, err *kerr.Error)
	// Expires says of which topics offsets do not expire, and since when the others are not
	// in use, in milliseconds: -1 for since they were committed. None expires if ok is false.
	Expires() (subscribed func(topic string) bool, since int64, ok bool)

	// Look fills in what is seen of its members.
	Look(out *Look)
	// Version is another one when what look tells has changed.
	Version() Version
	// Entry begins an entry of the journal.
	Entry(x *Step, kind journal.EntryKind) journal.Entry
	// SilentSince is since when a member counts as silent, 0 if it does not.
	SilentSince(id string) int64
	// Check says what is wrong with its state, nil if nothing is.
	Check() error
}

// Kind is a kind of group: a line in the registry.
type Kind struct {
	Name schema.Kind
	// Make makes a group of what it has in common with one of another kind, which it
	// replaces: offsets, and who was silent.
	Make func(Base) Group
	// APIs is the requests that clients of this kind of group send.
	APIs []API
	// Stays says that a group without members and offsets stays until someone deletes it.
	Stays bool
}

// Cleared is a group with state elsewhere, which is deleted before the group is.
type Cleared interface {
	// Clear begins that, and says whether there is any. If so, d is told how it ended.
	Clear(x *Step, d Deletion) (later bool)
}

// Deletion waits until what a group has elsewhere is deleted.
type Deletion interface {
	Cleared(x *Step, group string, err *kerr.Error)
}

// Base is what groups of all kinds have.
type Base struct {
	ID       string
	Offsets  map[string]*TopicOffsets
	Unstable map[subscription.TopicPartition][]Unstable // offsets that wait for their transactions to end; nil if there are none
	Silences map[string]time.Duration                   // how long members were silent that were loaded, see silence.go; nil if there are none
	Reset    *Reset                                     // who last committed offsets from outside since it became Empty
	Gone     bool                                       // it was deleted, or became a group of another kind
}

func (b *Base) Common() *Base { return b }

// HasOffsets says that there are offsets, committed or not.
func (b *Base) HasOffsets() bool { return len(b.Offsets) > 0 || len(b.Unstable) > 0 }

// Version tells one state of a group from another.
type Version struct {
	Record     *schema.Group // of a classic group: another one with each record
	Changes    uint64        // of a consumer group's records
	Generation int32
	State      int8
	Unsettled  bool // it changes without a trace
}
