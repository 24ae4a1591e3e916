// Package explain says in plain sentences why a group rebalanced, what else
// happened to it, what is odd about it now, and what to change.
//
//	Evidence (a view of the group, the entries of its journal) → Explain → Explanation
//	                                                           → Findings
//
// It owns the reasoning from evidence to findings and causes, and the words for
// both. The results are data with sentences in them: it prints nothing, asks
// no one for anything, and does not even look at the clock. Tables, colours and
// line breaks are the caller's.
package explain

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"muster/internal/journal"
	"muster/internal/watch/groupview"
	"muster/internal/words"
)

// Evidence is what is known of a group.
type Evidence struct {
	Name       string
	Group      *groupview.Group // nil if there is no such group any more
	Journal    bool             // Whether the broker keeps one.
	Entries    []Entry          // What it says, the oldest first.
	Partitions map[string]int   // Of topics, 0 if there is no such topic.
	// Held are the partitions that an open transaction holds back.
	Held map[groupview.TopicPartition]HeldBack
	// Watched is what the group's own broker knows of its lag over time, nil elsewhere.
	Watched *Watched
	Now     time.Time
	Since   time.Duration // How far back the entries go.
}

// Explanation is what there is to say of a group. The fields are those of muster
// groups explain --json.
type Explanation struct {
	Name           string      `json:"name"`
	Type           string      `json:"type,omitempty"`
	State          string      `json:"state"` // Dead if there is no such group any more.
	ProtocolType   string      `json:"protocol_type"`
	Assignor       string      `json:"assignor"`
	Members        int         `json:"members"`
	TotalLag       *int64      `json:"total_lag"`
	LagAtLeast     bool        `json:"total_lag_at_least,omitempty"`
	Text           string      `json:"text"`
	Journal        bool        `json:"journal"`
	SinceSeconds   float64     `json:"since_seconds"`
	RebalanceCount int         `json:"rebalance_count"`
	UnderWay       *UnderWay   `json:"under_way"`
	Rebalances     []Rebalance `json:"rebalances"` // The latest first.
	EventCount     int         `json:"event_count"`
	Events         []Event     `json:"events"` // The latest first.
	Findings       []Finding   `json:"findings"`

	QuietRestarts string        `json:"-"` // A sentence on static members that restarted without a rebalance.
	Now           time.Time     `json:"-"` // The time that the sentences go by.
	Since         time.Duration `json:"-"`
}

// Event is something other than a rebalance.
type Event struct {
	Time  time.Time         `json:"time"`
	Kind  journal.EntryKind `json:"kind"`
	Text  string            `json:"text"`
	Entry json.RawMessage   `json:"entry"`
}

// UnderWay is a rebalance that has not settled.
type UnderWay struct {
	Started time.Time       `json:"started"`
	Text    []string        `json:"text"`
	Entry   json.RawMessage `json:"entry"`
}

// Rebalance is a rebalance that has settled. The entry is what the broker wrote
// to the journal.
type Rebalance struct {
	Started         time.Time       `json:"started"`
	Settled         time.Time       `json:"settled"`
	Generation      int32           `json:"generation"`     // The group epoch of a consumer group.
	Type            string          `json:"type,omitempty"` // That the group was of, if not classic.
	TookSeconds     float64         `json:"took_seconds"`
	JoinSeconds     float64         `json:"join_seconds"`
	SyncSeconds     float64         `json:"sync_seconds"`
	MembersBefore   int             `json:"members_before"`
	MembersAfter    int             `json:"members_after"`
	PartitionsMoved int             `json:"partitions_moved"`
	Partitions      int             `json:"partitions"`
	Text            []string        `json:"text"`
	Entry           json.RawMessage `json:"entry"`
}

// Explain tells of the latest rebalances, as many as limit, and of as many other
// events; of all if it is 0.
func (e *Evidence) Explain(limit int) *Explanation {
	out := &Explanation{
		Name: e.Name, State: groupview.Dead, Text: e.describeNow(), Journal: e.Journal, SinceSeconds: e.Since.Seconds(),
		Rebalances: []Rebalance{}, Events: []Event{}, Findings: e.Findings(),
		QuietRestarts: e.quietRestarts(), Now: e.Now, Since: e.Since,
	}
	if g := e.Group; g != nil {
		out.Type = g.Type
		out.State, out.ProtocolType, out.Assignor, out.Members = g.State, g.ProtocolType, g.Assignor, len(g.Members)
		out.TotalLag, out.LagAtLeast = g.TotalLag, g.TotalLagAtLeast
	}
	if s := e.underWay(); s != nil {
		text := e.underWayText(s)
		if last := e.lastStart(); e.Group.State == groupview.Preparing && last.WaitingN > 0 {
			text = append(text, fmt.Sprintf("At %s it waited for %s to join.", words.Time(last.Time, e.Now), last.waiting()))
		}
		out.UnderWay = &UnderWay{s.Time, text, s.Raw}
	}
	settled := e.settled()
	out.RebalanceCount = len(settled)
	for _, s := range slices.Backward(settled) {
		if limit > 0 && len(out.Rebalances) == limit {
			break
		}
		r := s.rebalance()
		if s.assigns() {
			r.Type, r.Text = s.Type, e.consumerStory(s)
		}
		out.Rebalances = append(out.Rebalances, r)
	}
	for i := range slices.Backward(e.Entries) {
		s := &e.Entries[i]
		if !s.isEvent() {
			continue
		}
		if out.EventCount++; limit == 0 || len(out.Events) < limit {
			out.Events = append(out.Events, Event{s.Time, s.Kind, s.sentence(), s.Raw})
		}
	}
	return out
}

func (e *Entry) rebalance() Rebalance {
	return Rebalance{
		Started: e.Started, Settled: e.Time, Generation: e.Generation,
		TookSeconds: e.Took().Seconds(), JoinSeconds: e.JoinPhase.Seconds(), SyncSeconds: e.SyncPhase.Seconds(),
		MembersBefore: e.Before, MembersAfter: e.After, PartitionsMoved: e.MoveN, Partitions: e.PartitionN,
		Text: e.sentences(), Entry: e.Raw,
	}
}

// describeNow words what the group is at this moment.
func (e *Evidence) describeNow() string {
	g := e.Group
	if g == nil {
		return fmt.Sprintf("Group %s does not exist any more.", e.Name)
	}
	members, lag := words.Plural(len(g.Members), "member"), " Its total lag is "+lagText(g)+"."
	switch {
	case g.State == groupview.Preparing:
		return fmt.Sprintf("Group %s is %s: it waits for its %s to join.%s", e.Name, g.State, members, lag)
	case g.Assigns() && g.Rebalances() && len(g.Members) > 0:
		return fmt.Sprintf("Group %s is %s: %s%s", e.Name, g.State, e.progress(), lag)
	case g.State == groupview.Completing:
		return fmt.Sprintf("Group %s is %s: its %s wait for the leader to assign partitions.%s", e.Name, g.State, members, lag)
	case len(g.Members) == 0:
		return fmt.Sprintf("Group %s is %s: it has no members.%s", e.Name, g.State, lag)
	case g.Tells():
		n := len(g.Assigned())
		return fmt.Sprintf("Group %s is %s: %s by the %s assignor.%s", e.Name, g.State, words.Plural(n, "partition")+words.Verb(n, " is", " are")+" assigned to "+members, g.Assignor, lag)
	}
	return fmt.Sprintf("Group %s is %s with %s.%s", e.Name, g.State, members, lag)
}

// lagText words the total lag, to follow "is".
func lagText(g *groupview.Group) string {
	switch {
	case g.TotalLag == nil:
		return "-"
	case g.TotalLagAtLeast:
		return fmt.Sprintf("at least %s, which is where the broker stopped counting", words.Number(*g.TotalLag))
	}
	return words.Number(*g.TotalLag)
}

// quietRestarts words the restarts of static members that caused no rebalance.
func (e *Evidence) quietRestarts() string {
	var why []journal.Trigger
	for i := range e.Entries {
		if e.Entries[i].Kind == journal.KindReplaced {
			why = append(why, e.Entries[i].Triggers...)
		}
	}
	if len(why) == 0 {
		return ""
	}
	return fmt.Sprintf("Static members restarted %s without a rebalance: %s.", words.Times(len(why)), counted(why))
}
