// Package groupview shows a group as people see it: its state, members,
// partitions, committed offsets and lag.
//
//	Source (the Kafka admin API; the broker itself) → Loader → Group
//
// The facts come from a Source, a small interface that the owner of the facts
// implements. This package owns what is made of them: which partitions belong to
// a group, what lag is, and what stays unknown. The results are data, with the
// names that muster groups --json prints. It explains nothing (that is package
// explain), prints nothing, and changes no group.
//
//	lag = max(high watermark − max(committed offset, log start offset), 0)
//
// where offsets are dense; elsewhere the source counts records. A partition
// without a committed offset has no lag, as in Kafka's own tools.
package groupview

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"muster/internal/journal"
	"muster/internal/watch/lag"
)

// The states and the protocol type that matter here, in Kafka's words.
const (
	Stable     = "Stable"
	Empty      = "Empty"
	Dead       = "Dead" // There is no such group.
	Preparing  = "PreparingRebalance"
	Completing = "CompletingRebalance"

	Assigning   = "Assigning" // Of consumer groups.
	Reconciling = "Reconciling"

	Consumer = "consumer" // The protocol type.

	TypeClassic  = journal.TypeClassic // Types of groups.
	TypeConsumer = journal.TypeConsumer
	TypeShare    = journal.TypeShare
	TypeStreams  = journal.TypeStreams
)

// Group is a group at one moment. The fields are those of muster groups describe
// --json; what is not known is null.
type Group struct {
	Name            string       `json:"name"`
	Type            string       `json:"type"`
	State           string       `json:"state"`
	ProtocolType    string       `json:"protocol_type"`
	Assignor        string       `json:"assignor"`
	Epoch           *int32       `json:"epoch,omitempty"`        // Of a consumer group.
	TargetEpoch     *int32       `json:"target_epoch,omitempty"` // Likewise: which epoch members are on their way to.
	Coordinator     *Coordinator `json:"coordinator"`
	Members         []Member     `json:"members"`
	Partitions      []Partition  `json:"partitions"` // By topic and number.
	TotalLag        *int64       `json:"total_lag"`
	TotalLagAtLeast bool         `json:"total_lag_at_least,omitempty"` // The count of a partition ended early.
	Uncommitted     int          `json:"uncommitted_partitions"`       // They have no lag.

	// Of a streams group.
	Topology []Subtopology `json:"topology,omitempty"`
	Missing  []string      `json:"missing_topics,omitempty"` // Those of the topology that do not exist.
}

// Coordinator is the broker that has a group.
type Coordinator struct {
	Broker  int32  `json:"broker"`
	Address string `json:"address"`
}

// Member is a member. Brokers tell topics and assignments only while the group is
// Stable; otherwise they are nil.
type Member struct {
	ID       string     `json:"member_id"`
	ClientID string     `json:"client_id"`
	Host     string     `json:"host"`
	Instance *string    `json:"instance_id"`
	Topics   []string   `json:"topics"`
	Assigned []Assigned `json:"assigned"`

	// Of members of consumer groups.
	Pattern *string    `json:"pattern,omitempty"` // The regular expression that it subscribes to.
	Epoch   *int32     `json:"epoch,omitempty"`
	Target  []Assigned `json:"target,omitempty"`  // What it is to have.
	Classic bool       `json:"classic,omitempty"` // It uses the classic protocol.

	// Of members of streams groups. Threads of an instance have the same process.
	Process     string `json:"process,omitempty"`
	Tasks       *Tasks `json:"tasks,omitempty"`
	TargetTasks *Tasks `json:"target_tasks,omitempty"`

	// What only a muster broker tells of them.
	Assignor *string    `json:"assignor,omitempty"` // That it asks for.
	Matches  *int       `json:"matches,omitempty"`  // How many topics its regular expression matches.
	Revoking []Assigned `json:"revoking,omitempty"` // What it was told to give up, and has not.
	Waits    bool       `json:"waits,omitempty"`    // It waits for others to give up partitions.
	Since    *time.Time `json:"since,omitempty"`    // When it was told, or since when it waits.
	Until    *time.Time `json:"until,omitempty"`    // When it is removed unless it has given them up.
	Heard    *time.Time `json:"heard,omitempty"`    // When its last heartbeat came, if it is to give up something.
	Session  *time.Time `json:"session,omitempty"`  // When it is removed unless another one has come.
}

// Assigned is the partitions of a topic that a member has.
type Assigned struct {
	Topic      string  `json:"topic"`
	Partitions []int32 `json:"partitions"`
}

// Partition is a partition that a group reads, or has read.
type Partition struct {
	Topic      string   `json:"topic"`
	Partition  int32    `json:"partition"`
	Committed  *int64   `json:"committed"`
	LogStart   *int64   `json:"log_start_offset"`
	LogEnd     *int64   `json:"log_end_offset"`
	Lag        *int64   `json:"lag"`
	LagAtLeast bool     `json:"lag_at_least,omitempty"` // The source stopped counting there.
	LagSeconds *float64 `json:"lag_seconds"`
	Owner      *string  `json:"owner"`
}

// Assigns says whether the coordinator assigns in the group.
func (g *Group) Assigns() bool { return journal.Assigns(g.Type) }

// Tells says whether the broker tells what members read: it does when the group
// is Stable, and we understand it when they are consumers. Where the broker assigns it
// always does.
func (g *Group) Tells() bool {
	return g.Assigns() || g.State == Stable && g.ProtocolType == Consumer
}

// Rebalances says whether a rebalance is under way.
func (g *Group) Rebalances() bool {
	return g.State == Preparing || g.State == Completing || g.State == Assigning || g.State == Reconciling
}

// Topics returns the topics of the group's partitions.
func (g *Group) Topics() []string {
	var out []string
	for _, p := range g.Partitions { // They are sorted.
		if len(out) == 0 || out[len(out)-1] != p.Topic {
			out = append(out, p.Topic)
		}
	}
	return out
}

// Subscribed returns the topics that members subscribe to. Of those that a regular
// expression matches we are told when they are assigned.
func (g *Group) Subscribed() []string {
	set := map[string]bool{}
	for _, m := range g.Members {
		for _, topic := range m.Topics {
			set[topic] = true
		}
		if m.Pattern == nil {
			continue
		}
		for _, t := range slices.Concat(m.Assigned, m.Target) {
			set[t.Topic] = true
		}
	}
	return slices.Sorted(maps.Keys(set))
}

// Owners returns the id of the member that each assigned partition has. In a share group there
// may be several, and no partition has an owner.
func (g *Group) Owners() map[TopicPartition]string {
	out := map[TopicPartition]string{}
	if g.Type == TypeShare {
		return out
	}
	for _, m := range g.Members {
		for _, t := range m.Assigned {
			for _, p := range t.Partitions {
				out[TopicPartition{t.Topic, p}] = m.ID
			}
		}
	}
	return out
}

// Assigned returns the partitions that some member has. Of a share group it may be several.
func (g *Group) Assigned() map[TopicPartition]bool {
	out := map[TopicPartition]bool{}
	for _, m := range g.Members {
		for _, t := range m.Assigned {
			for _, p := range t.Partitions {
				out[TopicPartition{t.Topic, p}] = true
			}
		}
	}
	return out
}

// KeepLagging drops the partitions that have been read to the end, or have no lag
// because nothing was committed.
func (g *Group) KeepLagging() {
	kept := []Partition{}
	for _, p := range g.Partitions {
		if p.Committed != nil && (p.Lag == nil || *p.Lag > 0) {
			kept = append(kept, p)
		}
	}
	g.Partitions = kept
}

// PartitionCount is how many partitions a member has.
func (m *Member) PartitionCount() int {
	n := 0
	for _, t := range m.Assigned {
		n += len(t.Partitions)
	}
	return n
}

// Name is the group instance id of a static member, else the member id in short.
func (m *Member) Name() string {
	if m.Instance != nil {
		return *m.Instance
	}
	return MemberOf(m.ClientID, m.ID)
}

func (m *Member) String() string { return m.Name() + " at " + m.Host }

// ShortNames returns a name for each member id, which no other member has.
func (g *Group) ShortNames() map[string]string {
	out, taken := map[string]string{}, map[string]int{}
	for i := range g.Members {
		m := &g.Members[i]
		out[m.ID] = m.Name()
		taken[m.Name()]++
	}
	for id, name := range out {
		if taken[name] > 1 {
			out[id] = id
		}
	}
	return out
}

// MemberName words a member by its id.
func (g *Group) MemberName(id string) string {
	for i := range g.Members {
		if g.Members[i].ID == id {
			return g.Members[i].String()
		}
	}
	return ShortMember(id)
}

// uuidLength is the length of the random part of a member id.
const uuidLength = 36

// ShortMember shortens a member id, which is a client id and a UUID, to what
// tells it from the others.
func ShortMember(id string) string {
	cut := len(id) - uuidLength
	if cut < 1 || strings.Count(id[cut:], "-") != 4 || id[cut-1] != '-' {
		return id
	}
	return id[:cut+8]
}

// opaque is how long a member id is, at least, that a client of the consumer protocol
// made: a UUID, in one notation or another. shownID is how much of it tells it from the
// others.
const (
	opaque  = 20
	shownID = 8
)

// MemberOf words a member by its client id and the part of its member id that tells it
// from the others. In the classic protocol the member id begins with the client id; in
// the consumer protocol no one could tell from the member id whose it is.
func MemberOf(clientID, id string) string {
	if clientID == "" || len(id) < opaque || strings.HasPrefix(id, clientID) {
		return ShortMember(id)
	}
	for i := range id {
		if i >= shownID {
			return clientID + "-" + id[:i]
		}
	}
	return clientID + "-" + id
}

// Name words a partition.
func (p *Partition) Name() string { return fmt.Sprintf("%s-%d", p.Topic, p.Partition) }

// Next is the offset that the group reads next, of a partition that has a lag.
func (p *Partition) Next() int64 { return lag.Next(*p.Committed, lag.Bounds{Start: *p.LogStart}) }
