package web

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"muster/internal/auth"
	"muster/internal/watch/explain"
	"muster/internal/watch/lag"
	"muster/internal/watch/list"
	"muster/internal/web/problem"
)

// anyFinding stands in a query for all findings.
const anyFinding = "any"

// ownGroups lists this broker's groups from the last snapshot. Nobody else is asked, so it
// costs the same whatever the groups do.
func (a *api) ownGroups(c *call, q *GroupsQuery) (*keyedGroups, error) {
	by, reverse, ok := list.ParseSort(cmp.Or(q.Sort, "name"))
	if !ok {
		return nil, problem.BadRequest("groups cannot be sorted by %q", q.Sort)
	}
	if q.Topic != "" {
		if err := a.may(c.asks(auth.Describe, auth.Topic, q.Topic)); err != nil {
			return nil, err
		}
	}
	ask := &list.Query{
		Text: q.Q, States: q.State, Types: q.Type, Topic: q.Topic, Sort: by, Reverse: reverse, Limit: q.Limit, After: q.After,
		Found: slices.Contains(q.Finding, anyFinding), Sees: a.groupsSeen(c),
	}
	if !ask.Found {
		ask.Findings = q.Finding
	}
	s := a.reads.Snapshot()
	page, err := s.Groups.Find(ask)
	if err != nil {
		return nil, problem.BadRequest("%v", err)
	}
	out := &keyedGroups{GroupList: GroupList{At: known(s.At), Groups: []GroupRow{}, Next: page.Next, Incomplete: []Silent{}}, Keys: []string{}}
	for _, g := range page.Groups {
		out.Groups = append(out.Groups, a.groupRow(c, g))
		out.Keys = append(out.Keys, ask.Cursor(g))
	}
	a.addRecent(out.Groups)
	if page.Matched >= 0 {
		out.Matched = &page.Matched
	}
	if page.Total >= 0 {
		out.Total = &page.Total
	}
	return out, nil
}

// groupsSeen says which groups the caller may know of; nil for all, which who may
// describe the cluster does, as in ListGroups.
func (a *api) groupsSeen(c *call) func(string) bool {
	if a.sees(c, auth.Cluster, auth.ClusterName) {
		return nil
	}
	return func(group string) bool { return a.sees(c, auth.Group, group) }
}

// groupRow is a row as the caller may see it.
func (a *api) groupRow(c *call, g *list.GroupRow) GroupRow {
	row, in := *g, time.Duration(0)
	if g.CatchUpSeconds != nil {
		in = time.Duration(*g.CatchUpSeconds * float64(time.Second))
	}
	row.PaceText, row.Findings, row.Topics = explain.PaceText(g.Pace, in), some(g.Findings), []string{}
	for _, topic := range g.Topics {
		if a.sees(c, auth.Topic, topic) {
			row.Topics = append(row.Topics, topic)
		}
	}
	return row
}

// recentAtOnce is for how many rows the tracker is asked under one lock, which passes wait
// for.
const recentAtOnce = 100

// addRecent adds how the lag of groups was in the last minutes.
func (a *api) addRecent(rows []GroupRow) {
	for part := range slices.Chunk(rows, recentAtOnce) {
		a.reads.Lag(func(t *lag.Tracker) {
			for i := range part {
				part[i].Recent = t.Recent(part[i].Name)
			}
		})
	}
	for i := range rows {
		rows[i].Recent = some(rows[i].Recent)
	}
}

// otherBrokers names the brokers whose groups, or whatever it is, are not in an answer:
// each tells of its own only.
func (a *api) otherBrokers(what string) []Silent {
	out := []Silent{}
	for _, b := range a.reads.Image().Brokers {
		if b.ID != a.reads.Node() {
			out = append(out, Silent{b.ID, fmt.Sprintf("its %s are not in this answer; ask it", what)})
		}
	}
	return out
}

// ago returns the time so long ago.
func (a *api) ago(d time.Duration) time.Time { return a.now().Add(-d) }
