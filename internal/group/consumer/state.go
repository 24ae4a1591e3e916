// Package consumer is groups of the consumer protocol (KIP-848), also those with members that
// use the classic protocol. What it has in common with other kinds of groups in which the
// coordinator assigns is in package modern.
//
// A group becomes one from a classic group, and the other way round, in upgrade.go and
// downgrade.go and nowhere else.
package consumer

import (
	"time"

	"muster/internal/group/kind"
	"muster/internal/group/modern"
	"muster/internal/group/schema"
)

// What members are given is partitions.
type (
	Partition = modern.Partition
	Held      = modern.Held[Partition]
	Current   = modern.Current[Partition]
	pending   = modern.Pending[Partition]
)

// Group is a group of the consumer protocol (KIP-848).
type Group struct {
	modern.Group[Partition, *Member]

	// Hard state: what the records say.
	oldTopics bool              // there is a record of an older Kafka that no one needs
	Regexes   map[string]*Regex // that were resolved, by pattern

	// What follows from the hard state.
	Owners    map[Partition]*Member // who holds a partition, or has yet to let go of it
	Names     map[string]int        // how many members subscribe to a topic by name
	Patterns  map[string]int        // how many members have a regex
	bytes     int64                 // that members hold by what they say of themselves
	Classic   int                   // members that use the classic protocol
	Supported kind.Tally            // how many of these support each protocol

	// Soft state.
	scan             scan              // of the topics for regular expressions
	DowngradeRefusal *downgradeRefusal // why it could not become a classic group, nil if that was not tried
}

// Regex is what a pattern matched when it was last resolved.
type Regex struct {
	Topics  []string // sorted
	version int64
	at      int64 // in milliseconds
}

// Member is a member of a consumer group.
type Member struct {
	modern.Member[Partition]
	Metadata *schema.ConsumerMember // record 5, nil if there is none
	JoinSeq  uint64                 // of the timer by which one of the classic protocol must have joined again, 0 if none
	SyncSeq  uint64                 // of the timer by which it must have asked for its assignment, 0 if none
}

// New returns a group that takes over what another had of offsets.
func New(b kind.Base) *Group {
	g := &Group{Regexes: map[string]*Regex{}, Owners: map[Partition]*Member{}, Names: map[string]int{}, Patterns: map[string]int{}}
	g.Init(g, b)
	return g
}

// IsGone says that no record is left.
func (g *Group) IsGone() bool { return g.Group.IsGone() && !g.oldTopics && len(g.Regexes) == 0 }

// Common implements modern.AnyMember.
func (mem *Member) Common() *modern.Member[Partition] { return &mem.Member }

// Identity implements modern.AnyMember.
func (mem *Member) Identity() (modern.Identity, bool) {
	m := mem.Metadata
	if m == nil {
		return modern.Identity{}, false
	}
	return modern.Identity{Instance: m.Instance, ClientID: m.ClientID, Host: m.Host}, true
}

// RevokeTimeout implements modern.AnyMember. A classic member must join again instead, and
// has that long for it.
func (mem *Member) RevokeTimeout() (time.Duration, bool) {
	return mem.rebalanceTimeout(), mem.Metadata.Classic == nil
}

// pattern is the member's regular expression, "" for none.
func (mem *Member) pattern() string {
	if mem.Metadata == nil {
		return ""
	}
	return OrEmpty(mem.Metadata.Regex)
}
