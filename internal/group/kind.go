package group

import (
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/schema"
	"muster/internal/journal"
	"muster/internal/machine"
)

// Group is what a shard asks of a group, of whatever kind it is.
type Group interface {
	// common is what groups of all kinds have.
	common() *base
	// kind is Kafka's name of the group's type.
	kind() schema.Kind
	// protocolName is the protocol type of its members, by which clients list it.
	protocolName() string
	// stateName is Kafka's name of the group's state.
	stateName() string
	// isEmpty says that it has no members.
	isEmpty() bool
	// hadMembers says that offsets which are committed while it is empty are a reset.
	hadMembers() bool
	// weight is how many bytes members, and those who are about to become one, have made
	// the group hold.
	weight() int64

	// replay applies a record of its kind, and isGone says that none is left.
	replay(r schema.Record)
	isGone() bool
	// eachRecord gives all its records, but not those that any group may have.
	eachRecord(put func(machine.Record))

	// loaded brings it to life after its records were replayed.
	loaded(x *step)
	// fired handles a timer of the group, unless it has been replaced or cancelled since.
	fired(x *step, e machine.TimerFired)
	// deleteRecords removes all its records. It is empty.
	deleteRecords(x *step)

	// checkCommit, checkTxnCommit and checkFetch say whether a client may commit offsets, or
	// fetch them as a member.
	checkCommit(x *step, r *machine.Request, m *kmsg.OffsetCommitRequest) *kerr.Error
	checkTxnCommit(x *step, r *machine.Request, m *kmsg.TxnOffsetCommitRequest) *kerr.Error
	checkFetch(m *kmsg.OffsetFetchRequestGroup) *kerr.Error
	// inUse says of which topics offsets may not be deleted, or that none may.
	inUse() (subscribed func(topic string) bool, err *kerr.Error)
	// expires says of which topics offsets do not expire, and since when the others are not
	// in use, in milliseconds: -1 for since they were committed. None expires if ok is false.
	expires() (subscribed func(topic string) bool, since int64, ok bool)

	// look fills in what is seen of its members.
	look(out *Look)
	// version is another one when what look tells has changed.
	version() version
	// entry begins an entry of the journal.
	entry(x *step, kind journal.EntryKind) journal.Entry
	// silentSince is since when a member counts as silent, 0 if it does not.
	silentSince(id string) int64
	// check says what is wrong with its state, nil if nothing is.
	check() error
}

// kind is a kind of group: a line in the registry.
type kind struct {
	name schema.Kind
	// make makes a group of what it has in common with one of another kind, which it
	// replaces: offsets, and who was silent.
	make func(base) Group
	// request handles a request that clients of this kind of group send.
	request func(x *step, r *machine.Request) bool
}

// base is what groups of all kinds have.
type base struct {
	id       string
	offsets  map[string]*topicOffsets
	unstable map[topicPartition][]unstable // offsets that wait for their transactions to end; nil if there are none
	silences map[string]time.Duration      // how long members were silent that were loaded, see silence.go; nil if there are none
	reset    *reset                        // who last committed offsets from outside since it became Empty
	gone     bool                          // it was deleted, or became a group of another kind
}

func (b *base) common() *base { return b }

// hasOffsets says that there are offsets, committed or not.
func (b *base) hasOffsets() bool { return len(b.offsets) > 0 || len(b.unstable) > 0 }

// version tells one state of a group from another.
type version struct {
	record     *schema.Group // of a classic group: another one with each record
	changes    uint64        // of a consumer group's records
	generation int32
	state      int8
	unsettled  bool // it changes without a trace
}
