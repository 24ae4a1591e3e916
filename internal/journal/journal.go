// Package journal is the form of the journals: what is written to the topic
// __group_journal, as JSON and keyed by group, when something happens to a group, and
// to __transaction_journal, keyed by transactional id, when something happens to one.
//
//	group (writes entries) → broker (stores them) → __group_journal → explain, the CLI (read them)
//	txn   (writes entries) → broker (stores them) → __transaction_journal → the same
//
// It owns the types and their names in JSON, which are an interface to the
// outside: any Kafka client can read the topics. It also says which partition the
// entries of a group are in. It knows nothing of how groups and transactions work, decides
// nothing, and imports no other package of muster, so that all who write, store
// or read the journal can use it.
package journal

import "time"

// Entry is what happened to a group, and why. Lists are cut short in large
// groups; the counts beside them are not.
type Entry struct {
	Time       time.Time     `json:"time"`
	Group      string        `json:"group"`
	Kind       EntryKind     `json:"kind"`
	State      string        `json:"state"`
	Generation int32         `json:"generation"`
	Protocol   string        `json:"protocol,omitempty"`
	Triggers   []Trigger     `json:"triggers,omitempty"`
	TriggerN   int           `json:"triggerCount,omitempty"`
	Started    time.Time     `json:"started,omitzero"`
	JoinPhase  time.Duration `json:"joinNs,omitempty"` // waiting for members
	SyncPhase  time.Duration `json:"syncNs,omitempty"` // waiting for the leader
	Slowest    []Late        `json:"slowest,omitempty"`
	Missed     []Absent      `json:"missed,omitempty"` // did not join in time
	MissedN    int           `json:"missedCount,omitempty"`
	Waiting    []Absent      `json:"waiting,omitempty"` // must join before the rebalance that starts can go on
	WaitingN   int           `json:"waitingCount,omitempty"`
	Leader     *Who          `json:"leader,omitempty"`
	Before     int           `json:"membersBefore"`
	After      int           `json:"membersAfter"`
	Moves      []Move        `json:"moves,omitempty"`
	MoveN      int           `json:"moveCount,omitempty"`
	PartitionN int           `json:"partitionCount,omitempty"`
	Cause      Cause         `json:"cause,omitempty"` // why offsets or the group are gone
	By         *Who          `json:"by,omitempty"`    // who asked for that
	Topics     []TopicCount  `json:"topics,omitempty"`
	TopicN     int           `json:"topicCount,omitempty"`

	// Of groups in which the coordinator assigns, whose Generation is the group epoch.
	Type           string   `json:"type,omitempty"`           // such as TypeConsumer; empty of classic groups
	TargetEpoch    int32    `json:"targetEpoch,omitempty"`    // that the target assignment is of
	ProtocolBefore string   `json:"protocolBefore,omitempty"` // the assignor of the target before, if it was another
	Shares         []Share  `json:"shares,omitempty"`         // members that are to have more or less than they have
	ShareN         int      `json:"shareCount,omitempty"`
	Revokes        []Revoke `json:"revokes,omitempty"` // members that must let go of partitions, which others wait for
	RevokeN        int      `json:"revokeCount,omitempty"`
	Held           []Late   `json:"held,omitempty"` // who let go last, and how long after the target was made

	// Of KindSuspected. The list may be shorter than the count.
	Suspects []Suspect `json:"suspects,omitempty"`
	SuspectN int       `json:"suspectCount,omitempty"`

	Reset *Reset `json:"reset,omitempty"` // that the entry is about
}

// Types of groups. TypeConsumer is the consumer protocol's (KIP-848).
const (
	TypeClassic  = "classic"
	TypeConsumer = "consumer"
	TypeShare    = "share"
	TypeStreams  = "streams"
)

// Assigns says whether the coordinator assigns in groups of a type. Only in classic groups
// a member does, which leads the others: those have generations and join phases, all others
// have epochs.
func Assigns(groupType string) bool { return groupType != "" && groupType != TypeClassic }

// EntryKind says what a journal entry tells.
type EntryKind string

// The kinds of entries.
const (
	KindStarted  EntryKind = "rebalance-started"
	KindSettled  EntryKind = "rebalance-settled"
	KindReplaced EntryKind = "static-member-replaced" // without a rebalance
	KindFenced   EntryKind = "static-member-fenced"   // a process whose place another has taken
	KindLoaded   EntryKind = "group-loaded"           // by another broker, or again; only if it has members
	KindDeleted  EntryKind = "group-deleted"

	// Of groups of the consumer protocol. That everybody has what they are to have is
	// a KindSettled.
	KindEpoch      EntryKind = "group-epoch-raised"
	KindTarget     EntryKind = "target-assigned"
	KindUpgraded   EntryKind = "group-upgraded"   // from the classic protocol
	KindDowngraded EntryKind = "group-downgraded" // to the classic protocol

	KindOffsetsExpired EntryKind = "offsets-expired"
	KindOffsetsDeleted EntryKind = "offsets-deleted"
	KindOffsetsReset   EntryKind = "offsets-reset" // committed by somebody who is no member

	// Of a group that has members. That it took effect is a KindOffsetsReset.
	KindResetStarted EntryKind = "reset-started"
	KindResetDropped EntryKind = "reset-not-applied"

	// KindSuspected is told by who watches groups, and does not know the generation.
	KindSuspected EntryKind = "poison-suspected" // members died one after the other at the same committed offset
)

// Cause says why offsets or a group are gone.
type Cause string

// The causes.
const (
	CauseRequest Cause = "request"        // someone asked for it
	CauseExpired Cause = "expired"        // no one needed it for offsets.retention.minutes
	CauseTopics  Cause = "topics-deleted" // the topics are gone
)

// Who is a member as people know it.
type Who struct {
	Member   string `json:"member,omitempty"`
	ClientID string `json:"clientId,omitempty"`
	Host     string `json:"host,omitempty"`
	Instance string `json:"instanceId,omitempty"`
}

// Absent is someone that a join phase waits for, or has waited for in vain.
type Absent struct {
	Who
	Pending bool `json:"pending,omitempty"` // was told a member id, and has not joined with it
	Kept    bool `json:"kept,omitempty"`    // is static, and stays a member until the time to sync is over
}

// Late is a member and how long it let the others wait.
type Late struct {
	Who
	Waited time.Duration `json:"waitedNs"`
}

// Move is a partition that changed hands. From or To is empty if no one had it,
// or has it.
type Move struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	From      string `json:"from,omitempty"`
	To        string `json:"to,omitempty"`
}

// TopicCount is how many committed offsets of a topic an entry is about.
type TopicCount struct {
	Topic      string `json:"topic"`
	Partitions int    `json:"partitions"`
	Back       int    `json:"back,omitempty"`    // of which the offset is lower than before
	Forward    int    `json:"forward,omitempty"` // of which it is higher
}

// Suspect is a partition with a record that may kill who reads it. Offsets are strings, since
// JavaScript's numbers are too small.
type Suspect struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Committed int64  `json:"committed,string"`
	End       int64  `json:"end,string"` // the high watermark then
	Deaths    int    `json:"deaths"`     // members
}

// IsNote implements machine.Note.
func (*Entry) IsNote() {}

// IsNote implements machine.Note.
func (*Txn) IsNote() {}
