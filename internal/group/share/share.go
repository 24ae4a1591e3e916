// Package share is share groups (KIP-932): any number of members read a partition, and each
// record is handed to one of them at a time. What it has in common with other kinds of groups in
// which the coordinator assigns is in package modern.
//
// Here is who is a member, and which partitions it reads. What became of the records of a
// partition is the business of its leader, and is stored by the share coordinator, which is asked
// to initialize that state before a member is given a partition:
//
//	heartbeat ─ Initializing ─ share coordinator ─ Initialized ─ next heartbeat ─ epoch, target
//
// No partition waits for another member to let go of it: several may have it. So members go to
// their target at once, and a group is Empty or Stable.
package share

import (
	"time"

	"muster/internal/group/kind"
	"muster/internal/group/modern"
	"muster/internal/group/schema"
)

// What members are given is partitions.
type (
	partition = modern.Partition
	held      = modern.Held[partition]
	current   = modern.Current[partition]
	pending   = modern.Pending[partition]
)

// Group is a share group.
type Group struct {
	modern.Group[partition, *Member]

	// Hard state: of which partitions there is state in the share coordinator.
	topics *topics

	// What follows from the hard state.
	names map[string]int // how many members subscribe to a topic
	bytes int64          // that members hold by what they say of themselves

	// Soft state, see initialize.go.
	looked   looked
	untested bool      // whether all that is initialized is assigned
	asking   *question // to the share coordinator, nil for none
	asked    time.Time // when that began
	retryAt  time.Time // when what is being initialized is asked for again
	failed   failed
	// confirmAt is when what is initialized is to be initialized next, lest it is lost.
	confirmAt time.Time
}

// Member is a member of a share group.
type Member struct {
	modern.Member[partition]
	Metadata *schema.ShareMember // record 10, nil if there is none
}

// New returns a group that takes over what another had of offsets.
func New(b kind.Base) *Group {
	g := &Group{names: map[string]int{}, topics: &topics{}}
	g.Init(g, b)
	return g
}

// IsGone says that no record is left.
func (g *Group) IsGone() bool { return g.Group.IsGone() && !g.topics.stored }

// Common implements modern.AnyMember.
func (mem *Member) Common() *modern.Member[partition] { return &mem.Member }

// Identity implements modern.AnyMember.
func (mem *Member) Identity() (modern.Identity, bool) {
	if mem.Metadata == nil {
		return modern.Identity{}, false
	}
	return modern.Identity{ClientID: mem.Metadata.ClientID, Host: mem.Metadata.Host}, true
}

// RevokeTimeout implements modern.AnyMember: no one waits for a member to let go of anything.
func (mem *Member) RevokeTimeout() (time.Duration, bool) { return 0, false }
