// Package streams is groups of the streams protocol (KIP-1071): members are threads of the
// instances of a Kafka Streams application, and what they are given is tasks, each in a role.
// What it has in common with other kinds of groups in which the coordinator assigns is in
// package modern.
//
// A group has a topology, which the first member brings and which never changes. What it needs
// is found out in package topology, and internal topics that are missing are created (see
// topics.go), which the broker does: a step asks for it, and is told later what came of it.
// Until all topics are there, and right, nothing is assigned.
//
// Nothing here does warm-ups, which need version 1 of the protocol: a member is given a task
// once, in the role that it is to have.
package streams

import (
	"time"

	"muster/internal/group/kind"
	"muster/internal/group/modern"
	"muster/internal/group/schema"
	"muster/internal/group/streams/topology"
	"muster/internal/metadata"
)

// What members are given is tasks.
type (
	Held    = modern.Held[Task]
	Current = modern.Current[Task]
	pending = modern.Pending[Task]
)

// Group is a group of the streams protocol.
type Group struct {
	modern.Group[Task, *Member]

	// Hard state: what the records say.
	Topology  *schema.StreamsTopology // nil if there is none yet
	Validated int32                   // the epoch of the topology that had all it needs when the group's epoch rose last, else noTopology
	Standbys  int                     // as they were then

	// What follows from the hard state.
	actives map[TaskID]*Member  // who has a task active, or has yet to let go of it
	holders map[place][]holding // by process: who has a task in some role, or has yet to let go of it
	bytes   int64               // that members and topology are counted for

	// Soft state.
	next     found  // what the next epoch will have
	resolved look   // what was last found out about the topology
	topics   topics // that are being created
	tasks    int64  // for which there is room
	crowded  bool   // there is none for those of the next epoch
	delay    uint64 // the sequence of the timer until whose end nothing is assigned, 0 if none runs
	shutdown string // the member that wants all to end, "" if none does
	answers  endpoints
}

// noTopology is the epoch of a topology that is not there, or not ready.
const noTopology = -1

// found is what an epoch of the group depends on besides its members and topics.
type found struct {
	validated int32
	standbys  int
}

// look is what was found out about a topology.
type look struct {
	*topology.Resolved
	image *metadata.Image
	of    *schema.StreamsTopology
}

// place is a task in a process, which must not have it twice.
type place struct {
	process string
	TaskID
}

// holding is who has a task in a process.
type holding struct {
	by   *Member
	role Role
}

// Member is a member of a streams group.
type Member struct {
	modern.Member[Task]
	Metadata *schema.StreamsMember // record 19, nil if there is none
	heldBy   string                // the process for which it counts as a holder
	endpoint int32                 // the epoch of endpoints that its client knows
}

// New returns a group that takes over what another had of offsets.
func New(b kind.Base) *Group {
	g := &Group{Validated: noTopology, actives: map[TaskID]*Member{}, holders: map[place][]holding{}}
	g.next.validated = noTopology
	g.Init(g, b)
	return g
}

// IsGone says that no record is left.
func (g *Group) IsGone() bool { return g.Group.IsGone() && g.Topology == nil }

// Common implements modern.AnyMember.
func (m *Member) Common() *modern.Member[Task] { return &m.Member }

// Identity implements modern.AnyMember.
func (m *Member) Identity() (modern.Identity, bool) {
	if m.Metadata == nil {
		return modern.Identity{}, false
	}
	return modern.Identity{Instance: m.Metadata.Instance, ClientID: m.Metadata.ClientID, Host: m.Metadata.Host}, true
}

// RevokeTimeout implements modern.AnyMember.
func (m *Member) RevokeTimeout() (time.Duration, bool) {
	return time.Duration(m.Metadata.RebalanceTimeoutMillis) * time.Millisecond, true
}

// process is the instance of the application that a member is a thread of.
func (m *Member) process() string {
	if m.Metadata == nil {
		return ""
	}
	return m.Metadata.Process
}

// stateNotReady is the state of a group whose topics are not all there, and right.
const stateNotReady = "NotReady"

// StateName returns Kafka's name of the group's state.
func (g *Group) StateName() string {
	if g.Present > 0 && !g.isReady() {
		return stateNotReady
	}
	return g.Group.StateName()
}

// isReady says whether tasks can be assigned.
func (g *Group) isReady() bool { return g.Topology != nil && g.Validated == g.Topology.Epoch }
