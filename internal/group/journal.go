package group

import "time"

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

	KindOffsetsExpired EntryKind = "offsets-expired"
	KindOffsetsDeleted EntryKind = "offsets-deleted"
	KindOffsetsReset   EntryKind = "offsets-reset" // committed by somebody who is no member
)

// TriggerKind says why a rebalance started or went on.
type TriggerKind string

// The triggers.
const (
	TriggerJoined   TriggerKind = "joined"   // a new member
	TriggerChanged  TriggerKind = "changed"  // a member joined again with another subscription
	TriggerLeader   TriggerKind = "leader"   // the leader asked for a new assignment
	TriggerLeft     TriggerKind = "left"     // a member left by itself
	TriggerRemoved  TriggerKind = "removed"  // somebody else removed a member
	TriggerExpired  TriggerKind = "expired"  // no heartbeat within the session timeout
	TriggerNoSync   TriggerKind = "no-sync"  // joined, but never asked for its assignment
	TriggerReplaced TriggerKind = "replaced" // a static member restarted
	TriggerMaxSize  TriggerKind = "max-size" // the group is larger than group.max.size
	TriggerFenced   TriggerKind = "fenced"   // no trigger: a request was refused
)

// Who is a member as people know it.
type Who struct {
	Member   string `json:"member,omitempty"`
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
	New    bool          `json:"new,omitempty"`      // expired in its first JoinGroup, and silent since it sent that
	By     *Who          `json:"by,omitempty"`       // who removed the member, or has its place
	Change *Change       `json:"change,omitempty"`   // what of the member is another than before

	Request string `json:"request,omitempty"` // that was refused
	Parked  bool   `json:"parked,omitempty"`  // it was, already, when another took the place
}

// Absent is somebody that a join phase waits for, or has waited for in vain.
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
}

// How much of a long list the journal keeps.
const (
	maxTriggers = 20
	maxSlowest  = 5
	maxMoves    = 100
	maxNames    = 20  // of topics and protocols
	maxReason   = 255 // characters, as in Kafka's own clients
)

func (m *member) who() Who {
	w := Who{Member: m.id, ClientID: m.clientID, Host: m.host}
	if m.instance != nil {
		w.Instance = *m.instance
	}
	return w
}

func (p *pending) absent(id string) Absent {
	return Absent{Who: Who{Member: id, ClientID: p.clientID, Host: p.host}, Pending: true}
}

// who returns who sent a request, a member or not.
func (r *Request) who() *Who { return &Who{ClientID: r.ClientID, Host: r.Host} }

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

// note writes an entry that is not the end of a rebalance.
func (x *step) note(g *group, kind EntryKind, why ...Trigger) {
	e := x.entry(g, kind)
	e.because(why)
	x.out.Journal = append(x.out.Journal, e)
}

// because gives an entry its reasons.
func (e *Entry) because(why []Trigger) {
	e.TriggerN = len(why)
	e.Triggers = why[:min(len(why), maxTriggers)]
}

func (x *step) entry(g *group, kind EntryKind) Entry {
	e := Entry{Time: x.now, Group: g.id, Kind: kind, State: g.state.String(), Generation: g.generation, Protocol: g.protocol, After: g.members.len()}
	if g.hard != nil {
		e.Before = len(g.hard.Members)
	}
	return e
}
