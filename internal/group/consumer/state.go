// Package consumer is groups of the consumer protocol (KIP-848), also those with members that
// use the classic protocol.
//
// A group becomes one from a classic group, and the other way round, in upgrade.go and
// downgrade.go and nowhere else.
package consumer

import (
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/group/kind"
	"muster/internal/group/modern"
	"muster/internal/group/schema"
	"muster/internal/metadata"
)

// Group is a group of the consumer protocol (KIP-848). There is no generation: the group has
// an epoch, which rises with each change of who wants what; the target assignment has the
// epoch that it was made for; and each member comes to that epoch by itself, heartbeat by
// heartbeat.
type Group struct {
	kind.Base

	// Hard state: what the records say.
	modern.Epochs
	oldTopics bool              // there is a record of an older Kafka that no one needs
	Members   []*Member         // in the order of their ids
	Regexes   map[string]*Regex // that were resolved, by pattern

	// What follows from the hard state.
	Instances map[string]*Member           // by group instance id
	Owners    map[modern.Partition]*Member // who holds a partition, or has yet to let go of it
	Names     map[string]int               // how many members subscribe to a topic by name
	Patterns  map[string]int               // how many members have a regex
	bytes     int64                        // that members hold by what they say of themselves
	Present   int                          // members that have joined
	Classic   int                          // those of them that use the classic protocol
	Supported kind.Tally                   // how many of these support each protocol

	// Soft state.
	seen             *metadata.Image   // which the hash was last compared with, nil for none
	Run              *Run              // of the assignor, nil if none is under way
	tooLarge         int32             // the epoch whose target cannot be stored, 0 if none
	scan             scan              // of the topics for regular expressions
	Account          account           // for the journal
	unheard          int               // members that were loaded and not heard of since
	changes          uint64            // how often the hard state has changed
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
	modern.Member
	Metadata *schema.ConsumerMember // record 5, nil if there is none
	JoinSeq  uint64                 // of the timer by which one of the classic protocol must have joined again, 0 if none
	SyncSeq  uint64                 // of the timer by which it must have asked for its assignment, 0 if none
}

// New returns a group that takes over what another had of offsets.
func New(b kind.Base) *Group {
	return &Group{
		Base: b, Epochs: modern.NewEpochs(), Regexes: map[string]*Regex{}, Instances: map[string]*Member{},
		Owners: map[modern.Partition]*Member{}, Names: map[string]int{}, Patterns: map[string]int{},
	}
}

// IsGone says that no record is left.
func (g *Group) IsGone() bool {
	return !g.HasEpoch && !g.HasTarget && !g.oldTopics && len(g.Members) == 0 && len(g.Regexes) == 0
}

// find returns where a member is, or would be, among the members.
func (g *Group) find(id string) (int, bool) {
	return slices.BinarySearchFunc(g.Members, id, func(m *Member, id string) int { return strings.Compare(m.ID, id) })
}

// Member returns a member that has joined, nil if there is none of that id.
func (g *Group) Member(id string) *Member {
	if i, ok := g.find(id); ok && g.Members[i].Metadata != nil {
		return g.Members[i]
	}
	return nil
}

// The states of a consumer group.
const (
	stateEmpty       = "Empty"
	stateAssigning   = "Assigning"
	stateReconciling = "Reconciling"
	StateStable      = "Stable"
)

// StateName returns Kafka's name of the group's state.
func (g *Group) StateName() string {
	switch {
	case g.Present == 0:
		return stateEmpty
	case g.Epoch > g.TargetEpoch:
		return stateAssigning
	}
	for _, m := range g.Members {
		if m.Metadata != nil && !m.HasSettled(g.TargetEpoch) {
			return stateReconciling
		}
	}
	return StateStable
}

// protocolError is an error that is told to a client with a reason.
type protocolError struct {
	*kerr.Error
	reason string
}

func refused(err *kerr.Error, reason string) *protocolError { return &protocolError{err, reason} }
