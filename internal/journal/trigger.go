package journal

import "time"

// Trigger is one reason for a rebalance.
type Trigger struct {
	Kind TriggerKind `json:"kind"`
	Who
	Reason string        `json:"reason,omitempty"`   // in the client's words
	Was    string        `json:"was,omitempty"`      // the id that a restarted static member had
	Silent time.Duration `json:"silentNs,omitempty"` // the session timeout that passed without a heartbeat
	New    bool          `json:"new,omitempty"`      // expired in its first JoinGroup, and silent since it sent that
	By     *Who          `json:"by,omitempty"`       // who removed the member, or has its place
	Change *Change       `json:"change,omitempty"`   // what is different about the member

	Request string `json:"request,omitempty"` // that was refused
	Parked  bool   `json:"parked,omitempty"`  // it was, already, when another took the place

	Bytes    int `json:"bytes,omitempty"`    // that the group's record would have with the assignment that was refused
	MaxBytes int `json:"maxBytes,omitempty"` // that it may have

	Had    int           `json:"had,omitempty"`    // partitions of a member of a consumer group that is gone
	Revoke *Revoke       `json:"revoke,omitempty"` // what a member of a consumer group has not let go of
	Topics *TopicChanges `json:"topics,omitempty"` // what happened to topics

	// At is where a member was that left by itself or was not heard of any more: what it
	// had, and what was committed of that then. It is for who watches groups in the same
	// process, and not in the journal.
	At []Position `json:"-"`
}

// Position is a partition and what is committed of it.
type Position struct {
	Topic     string
	Partition int32
	Committed int64
}

// TriggerKind says why a rebalance started or went on.
type TriggerKind string

// The triggers.
const (
	TriggerJoined   TriggerKind = "joined"    // a new member
	TriggerChanged  TriggerKind = "changed"   // a member joined again with another subscription
	TriggerLeader   TriggerKind = "leader"    // the leader asked for a new assignment
	TriggerLeft     TriggerKind = "left"      // a member left by itself
	TriggerRemoved  TriggerKind = "removed"   // someone else removed a member
	TriggerExpired  TriggerKind = "expired"   // no heartbeat within the session timeout
	TriggerNoSync   TriggerKind = "no-sync"   // joined, but never asked for its assignment
	TriggerReplaced TriggerKind = "replaced"  // a static member restarted
	TriggerMaxSize  TriggerKind = "max-size"  // the group is larger than group.max.size
	TriggerTooLarge TriggerKind = "too-large" // the leader's assignment is too large to be stored
	TriggerResumed  TriggerKind = "resumed"   // the coordinator was lost in the middle of a rebalance
	TriggerReset    TriggerKind = "reset"     // someone moves the group's offsets, or could not
	TriggerFenced   TriggerKind = "fenced"    // no trigger: a request was refused

	// Of groups of the consumer protocol only.
	TriggerNotRevoked  TriggerKind = "not-revoked" // did not let go of partitions within its rebalance timeout
	TriggerRegex       TriggerKind = "regex"       // a regular expression matches other topics
	TriggerTopics      TriggerKind = "topics"      // topics that members subscribe to are not what they were
	TriggerInitialized TriggerKind = "initialized" // of a share group: its coordinator knows partitions that no one reads yet
	TriggerNoJoin      TriggerKind = "no-join"     // of the classic protocol in such a group: was told to join again, and did not
	TriggerConflict    TriggerKind = "conflict"    // a load found that two members had the same partition
	TriggerUnreleased  TriggerKind = "unreleased"  // no trigger: someone came with the instance id of a member that has not left, and was refused
)

// Change is how a member that joined again differs from when it joined before.
// The lists may be shorter than the counts beside them.
type Change struct {
	TopicsAdded     []string `json:"topicsAdded,omitempty"`
	TopicsAddedN    int      `json:"topicsAddedCount,omitempty"`
	TopicsRemoved   []string `json:"topicsRemoved,omitempty"`
	TopicsRemovedN  int      `json:"topicsRemovedCount,omitempty"`
	Protocols       []string `json:"protocols,omitempty"` // if they changed, or are in another order
	ProtocolsBefore []string `json:"protocolsBefore,omitempty"`
	Owned           bool     `json:"owned,omitempty"`     // it owns other partitions, or since another generation
	Other           bool     `json:"other,omitempty"`     // what only its assignor understands
	Forgotten       bool     `json:"forgotten,omitempty"` // only its selected protocol was known, from the group's record

	// Of members of consumer groups, and of what a regular expression matches.
	Regex       string `json:"regex,omitempty"`
	RegexBefore string `json:"regexBefore,omitempty"` // if it was another
}
