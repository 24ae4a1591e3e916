package web

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"muster/internal/auth"
	"muster/internal/watch/explain"
	"muster/internal/watch/groupview"
	"muster/internal/web/problem"
)

// ExplainQuery asks why.
type ExplainQuery struct {
	Since time.Duration `query:"since" doc:"how far to look back: 30m, 24h, 7d; 1h if not given"`
	Limit int           `query:"limit" doc:"the latest so many rebalances, and as many other events, at most 1000; 3 if not given"`
}

// Explanation is what there is to say of a group.
type Explanation struct {
	Name           string      `json:"name"`
	State          string      `json:"state" doc:"Dead if there is no such group any more"`
	Text           string      `json:"text" doc:"what the group is at this moment"`
	Journal        bool        `json:"journal" doc:"whether there is a journal, without which nothing is known about the past"`
	SinceSeconds   float64     `json:"sinceSeconds" doc:"how far back was looked"`
	RebalanceCount int         `json:"rebalanceCount"`
	UnderWay       *UnderWay   `json:"underWay" doc:"the rebalance that goes on"`
	Rebalances     []Rebalance `json:"rebalances" doc:"the latest first"`
	QuietRestarts  string      `json:"quietRestarts,omitempty" doc:"on static members that restarted without a rebalance"`
	EventCount     int         `json:"eventCount"`
	Events         []Event     `json:"events" doc:"what else happened, the latest first"`
	Findings       []Finding   `json:"findings" doc:"what is odd now, what hurts most first"`
	Partly         bool        `json:"partly" doc:"more is in the journal of this time than was read of it, the latest part: there were at least so many rebalances and events"`
	Incomplete     []Silent    `json:"incomplete" doc:"brokers whose part of the journal is not in the answer, so that not all of the past is"`
}

// UnderWay is a rebalance that has not settled.
type UnderWay struct {
	Started time.Time `json:"started"`
	Text    []string  `json:"text"`
}

// Rebalance is a rebalance that has settled.
type Rebalance struct {
	Started         time.Time `json:"started"`
	Settled         time.Time `json:"settled"`
	Generation      int32     `json:"generation" doc:"the group epoch of a consumer group"`
	TookSeconds     float64   `json:"tookSeconds"`
	JoinSeconds     float64   `json:"joinSeconds"`
	SyncSeconds     float64   `json:"syncSeconds"`
	MembersBefore   int       `json:"membersBefore"`
	MembersAfter    int       `json:"membersAfter"`
	PartitionsMoved int       `json:"partitionsMoved"`
	Partitions      int       `json:"partitions"`
	Text            []string  `json:"text"`
	Entry           RawEntry  `json:"entry" doc:"what the broker wrote to the journal"`
}

// Event is something other than a rebalance.
type Event struct {
	Time  time.Time `json:"time"`
	Kind  string    `json:"kind"`
	Text  string    `json:"text"`
	Entry RawEntry  `json:"entry" doc:"what the broker wrote to the journal"`
}

// Finding is something odd about a group, and what to change.
type Finding struct {
	ID     string `json:"id"`
	Text   string `json:"text"`
	Change string `json:"change" doc:"what to do"`
}

// rebalancesTold is how many there are by default, as in muster groups explain.
const rebalancesTold = 3

// explain says why. The sentences are those of package explain, which muster groups
// explain prints; what only the broker knows, how the group gets on over time, comes
// besides. They name the group's topics with their offsets, so whoever wants to
// read them must be allowed to see all of these. What the journal says of other topics, and
// whose transactions hold the group back, is hidden from those who may not see it.
func (a *api) explain(c *call, q *ExplainQuery) (*Explanation, error) {
	limit := cmp.Or(q.Limit, rebalancesTold)
	if limit > maxJournalEntries {
		return nil, problem.BadRequest("limit is at most %d", maxJournalEntries)
	}
	e, past, err := a.gather(c, cmp.Or(q.Since, time.Hour))
	if err != nil {
		return nil, err
	}
	out := explanationOf(e.Explain(limit))
	out.Partly, out.Incomplete = past.partly, past.silent
	return out, nil
}

// gap is what is not known of the past.
type gap struct {
	partly bool     // More is in the journal than was read.
	silent []Silent // Who has a part of it and did not answer.
}

// gather asks for all that there is to know about a group.
func (a *api) gather(c *call, since time.Duration) (e *explain.Evidence, past *gap, err error) {
	ctx, name, now := c.ctx(), c.param("group"), a.now()
	loader := groupview.NewLoader(a.reads.Source())
	g, err := loader.One(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	page, silent, err := a.journalOf(c, now.Add(-since))
	if err != nil {
		return nil, nil, err
	}
	past = &gap{page.Partly, silent}
	e = &explain.Evidence{
		Name: name, Group: g, Journal: page.Exists, Entries: page.Entries, Partitions: loader.PartitionCounts(), Now: now, Since: since,
	}
	if g == nil {
		if len(page.Entries) == 0 {
			return nil, nil, problem.NotFound("there is no group %q", name)
		}
		return e, past, nil
	}
	for _, topic := range slices.Sorted(maps.Keys(e.Partitions)) {
		if err := a.may(c.asks(auth.Describe, auth.Topic, topic)); err != nil {
			return nil, nil, err
		}
	}
	if err := loader.AddLagSeconds(ctx, g, now); err != nil {
		return nil, nil, err
	}
	e.Watched = a.watched(name)
	e.Held, err = a.reads.HeldBack(ctx, g, now)
	for tp, h := range e.Held {
		if h.TransactionalID != "" && !a.sees(c, auth.TransactionalID, h.TransactionalID) {
			h.Hide()
			e.Held[tp] = h
		}
	}
	return e, past, err
}

func explanationOf(x *explain.Explanation) *Explanation {
	out := &Explanation{
		Name: x.Name, State: x.State, Text: x.Text, Journal: x.Journal, SinceSeconds: x.SinceSeconds, RebalanceCount: x.RebalanceCount,
		Rebalances: []Rebalance{}, QuietRestarts: x.QuietRestarts, EventCount: x.EventCount, Events: []Event{}, Findings: []Finding{},
	}
	if u := x.UnderWay; u != nil {
		out.UnderWay = &UnderWay{u.Started, some(u.Text)}
	}
	for _, r := range x.Rebalances {
		out.Rebalances = append(out.Rebalances, Rebalance{
			Started: r.Started, Settled: r.Settled, Generation: r.Generation, TookSeconds: r.TookSeconds, JoinSeconds: r.JoinSeconds,
			SyncSeconds: r.SyncSeconds, MembersBefore: r.MembersBefore, MembersAfter: r.MembersAfter,
			PartitionsMoved: r.PartitionsMoved, Partitions: r.Partitions, Text: some(r.Text), Entry: RawEntry(r.Entry),
		})
	}
	for _, e := range x.Events {
		out.Events = append(out.Events, Event{e.Time, string(e.Kind), e.Text, RawEntry(e.Entry)})
	}
	for _, f := range x.Findings {
		out.Findings = append(out.Findings, Finding(f))
	}
	return out
}
