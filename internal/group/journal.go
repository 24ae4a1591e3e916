package group

import (
	"muster/internal/journal"
	"muster/internal/machine"
)

// Short names of what the journal is made of.
type (
	Entry       = journal.Entry
	EntryKind   = journal.EntryKind
	Trigger     = journal.Trigger
	TriggerKind = journal.TriggerKind
	Who         = journal.Who
	Absent      = journal.Absent
	Late        = journal.Late
	Move        = journal.Move
	Change      = journal.Change
	Cause       = journal.Cause
	TopicCount  = journal.TopicCount
)

const (
	KindStarted        = journal.KindStarted
	KindSettled        = journal.KindSettled
	KindReplaced       = journal.KindReplaced
	KindFenced         = journal.KindFenced
	KindLoaded         = journal.KindLoaded
	KindDeleted        = journal.KindDeleted
	KindOffsetsExpired = journal.KindOffsetsExpired
	KindOffsetsDeleted = journal.KindOffsetsDeleted
	KindOffsetsReset   = journal.KindOffsetsReset

	CauseRequest = journal.CauseRequest
	CauseExpired = journal.CauseExpired
	CauseTopics  = journal.CauseTopics

	TriggerJoined   = journal.TriggerJoined
	TriggerChanged  = journal.TriggerChanged
	TriggerLeader   = journal.TriggerLeader
	TriggerLeft     = journal.TriggerLeft
	TriggerRemoved  = journal.TriggerRemoved
	TriggerExpired  = journal.TriggerExpired
	TriggerNoSync   = journal.TriggerNoSync
	TriggerReplaced = journal.TriggerReplaced
	TriggerMaxSize  = journal.TriggerMaxSize
	TriggerTooLarge = journal.TriggerTooLarge
	TriggerResumed  = journal.TriggerResumed
	TriggerFenced   = journal.TriggerFenced
)

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
func by(r *machine.Request) *Who { return &Who{ClientID: r.ClientID, Host: r.Host} }

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
	because(&e, why)
	x.out.Journal = append(x.out.Journal, e)
}

// because gives an entry its reasons.
func because(e *Entry, why []Trigger) {
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
