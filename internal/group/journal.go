package group

import (
	"cmp"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// EntryKind says what a journal entry tells.
type EntryKind string

// The kinds of entries.
const (
	KindStarted  EntryKind = "rebalance-started"
	KindSettled  EntryKind = "rebalance-settled"
	KindReplaced EntryKind = "static-member-replaced" // without a rebalance
	KindDeleted  EntryKind = "group-deleted"
)

// TriggerKind says why a rebalance started or went on.
type TriggerKind string

// The triggers.
const (
	TriggerJoined   TriggerKind = "joined"   // a new member
	TriggerChanged  TriggerKind = "changed"  // a member joined again with another subscription
	TriggerLeader   TriggerKind = "leader"   // the leader asked for a new assignment
	TriggerLeft     TriggerKind = "left"     // a member left by itself
	TriggerRemoved  TriggerKind = "removed"  // somebody removed a static member
	TriggerExpired  TriggerKind = "expired"  // no heartbeat within the session timeout
	TriggerNoSync   TriggerKind = "no-sync"  // joined, but never asked for its assignment
	TriggerReplaced TriggerKind = "replaced" // a static member restarted
	TriggerMaxSize  TriggerKind = "max-size" // the group is larger than group.max.size
)

// Who is a member as people know it.
type Who struct {
	Member   string `json:"member"`
	ClientID string `json:"clientId,omitempty"`
	Host     string `json:"host,omitempty"`
	Instance string `json:"instanceId,omitempty"`
}

// Trigger is one reason for a rebalance.
type Trigger struct {
	Kind TriggerKind `json:"kind"`
	Who
	Reason string        `json:"reason,omitempty"`   // in the client's words
	Was    string        `json:"was,omitempty"`      // the id that a restarted static member had
	Silent time.Duration `json:"silentNs,omitempty"` // the session timeout that passed without a heartbeat
}

// Late is a member and how long it let the others wait.
type Late struct {
	Who
	Waited time.Duration `json:"waitedNs"`
}

// Move is a partition that changed hands. From or To is empty if nobody had it,
// or has it.
type Move struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	From      string `json:"from,omitempty"`
	To        string `json:"to,omitempty"`
}

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
	Missed     []Who         `json:"missed,omitempty"` // did not join in time, and are out
	MissedN    int           `json:"missedCount,omitempty"`
	Leader     *Who          `json:"leader,omitempty"`
	Before     int           `json:"membersBefore"`
	After      int           `json:"membersAfter"`
	Moves      []Move        `json:"moves,omitempty"`
	MoveN      int           `json:"moveCount,omitempty"`
	PartitionN int           `json:"partitionCount,omitempty"`
}

// How much of a long list the journal keeps.
const (
	maxTriggers = 20
	maxSlowest  = 5
	maxMoves    = 100
	maxReason   = 255 // characters, as in Kafka's own clients
)

// rebalance collects what the journal will say of a rebalance.
type rebalance struct {
	started  time.Time
	again    time.Time // when members were last asked to join
	why      []Trigger
	whyN     int
	before   *kmsg.GroupMetadataValue
	joinedAt time.Time
	slowest  []Late
	lost     []Who
	lostN    int
}

func (m *member) who() Who {
	w := Who{Member: m.id, ClientID: m.clientID, Host: m.host}
	if m.instance != nil {
		w.Instance = *m.instance
	}
	return w
}

func trigger(kind TriggerKind, m *member, reason *string) Trigger {
	t := Trigger{Kind: kind, Who: m.who()}
	if reason != nil {
		t.Reason = firstCharacters(*reason, maxReason)
	}
	return t
}

func firstCharacters(s string, n int) string {
	for i := range s {
		if n--; n < 0 {
			return s[:i]
		}
	}
	return s
}

// beginRebalance starts a new account, or goes on with that of a rebalance that
// had to start over.
func (g *group) beginRebalance(now time.Time, why []Trigger) {
	if g.rebalance == nil {
		g.rebalance = &rebalance{started: now, before: g.hard}
	}
	g.rebalance.again = now
	g.rebalance.add(why...)
}

func (r *rebalance) add(why ...Trigger) {
	r.whyN += len(why)
	if room := maxTriggers - len(r.why); room > 0 {
		r.why = append(r.why, why[:min(room, len(why))]...)
	}
}

// missed notes a member that did not join in time.
func (r *rebalance) missed(m *member) {
	if r.lostN++; len(r.lost) < maxTriggers {
		r.lost = append(r.lost, m.who())
	}
}

// joined notes the end of the join phase, and who came last.
func (r *rebalance) joined(g *group, now time.Time) {
	r.joinedAt = now
	var all []Late
	for m := g.members.first; m != nil; m = m.next {
		if waited := m.asked.Sub(r.again); m.join != 0 && waited > 0 {
			all = append(all, Late{Who: m.who(), Waited: waited})
		}
	}
	slices.SortStableFunc(all, func(a, b Late) int { return cmp.Compare(b.Waited, a.Waited) })
	r.slowest = all[:min(len(all), maxSlowest)]
}

// note writes an entry that is not the end of a rebalance.
func (x *step) note(g *group, kind EntryKind, why ...Trigger) {
	e := x.entry(g, kind)
	e.TriggerN = len(why)
	e.Triggers = why[:min(len(why), maxTriggers)]
	x.out.Journal = append(x.out.Journal, e)
}

func (x *step) entry(g *group, kind EntryKind) Entry {
	e := Entry{Time: x.now, Group: g.id, Kind: kind, State: g.state.String(), Generation: g.generation, Protocol: g.protocol, After: g.members.len()}
	if g.hard != nil {
		e.Before = len(g.hard.Members)
	}
	return e
}

// settle writes the entry of a rebalance that has come to its end.
func (x *step) settle(g *group) {
	r := g.rebalance
	if r == nil {
		return
	}
	g.rebalance = nil
	e := x.entry(g, KindSettled)
	e.Started, e.Triggers, e.TriggerN = r.started, r.why, r.whyN
	e.JoinPhase, e.SyncPhase = r.joinedAt.Sub(r.started), x.now.Sub(r.joinedAt)
	e.Slowest, e.Missed, e.MissedN = r.slowest, r.lost, r.lostN
	e.Before = 0
	if r.before != nil {
		e.Before = len(r.before.Members)
	}
	if leader := g.members.get(g.leader); leader != nil {
		w := leader.who()
		e.Leader = &w
	}
	if g.protocolType == consumerType {
		e.Moves, e.MoveN, e.PartitionN = moves(r.before, g)
	}
	x.out.Journal = append(x.out.Journal, e)
}
