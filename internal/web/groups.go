package web

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"muster/internal/auth"
	"muster/internal/journal"
	"muster/internal/metadata"
	"muster/internal/watch/explain"
	"muster/internal/watch/lag"
	"muster/internal/watch/list"
	"muster/internal/web/fleet"
	"muster/internal/web/problem"
)

// anyFinding stands in a query for all findings.
const anyFinding = "any"

// ownGroups lists this broker's groups from the last snapshot. No one else is asked, so it
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

// keyedGroups is a page of one broker's groups, with the cursor after each. A cursor is
// what the list is sorted by, as bytes whose order is that of the list, so that pages of
// several brokers can be merged without knowing what they are sorted by.
type keyedGroups struct {
	GroupList
	Keys []string `json:"keys"`
}

// fleetGroups answers another broker.
func (a *api) fleetGroups(c *call, q *GroupsQuery) (*keyedGroups, error) { return a.ownGroups(c, q) }

// groups lists the groups of all brokers: each makes its page, and of these one is made.
func (a *api) groups(c *call, q *GroupsQuery) (*GroupList, error) {
	own, err := a.ownGroups(c, q)
	if err != nil {
		return nil, err
	}
	others := a.others(c)
	if len(others) == 0 {
		own.Incomplete = a.unasked(c, "groups")
		return &own.GroupList, nil
	}
	answers, silent := askOthers[keyedGroups](a, c, others, fleet.Question{URI: withQuery(FleetPrefix+"/groups", jsonQuery(c.request))})
	pages := []told[keyedGroups]{{a.reads.Node(), own}}
	for _, t := range answers {
		if len(t.answer.Keys) != len(t.answer.Groups) {
			silent = append(silent, Silent{t.node, unreadable})
			continue
		}
		if t.answer.At == nil {
			silent = append(silent, Silent{t.node, notLooked})
		}
		pages = append(pages, t)
	}
	out := mergeGroups(pages, strings.HasPrefix(q.Sort, "-"), cmp.Or(q.Limit, list.DefaultLimit), a.coordinatorOf)
	out.Incomplete = silent
	return out, nil
}

// mergeGroups makes one page of those of several brokers. A group that two tell of has
// just moved: the word of its coordinator counts.
func mergeGroups(pages []told[keyedGroups], reverse bool, limit int, coordinator func(string) int32) *GroupList {
	out := &GroupList{Matched: new(int), Total: new(int)}
	var rows []keyedRow[GroupRow]
	lists := make([]keys, len(pages))
	for i, p := range pages {
		l := p.answer
		lists[i] = keys{l.Keys, l.Next != ""}
		for j := range l.Groups {
			rows = append(rows, keyedRow[GroupRow]{l.Keys[j], p.node, l.Groups[j]})
		}
		out.At = oldest(out.At, l.At)
		out.Matched, out.Total = sum(out.Matched, l.Matched), sum(out.Total, l.Total)
	}
	owner := map[string]int32{}
	for _, r := range rows {
		if was, twice := owner[r.row.Name]; !twice || was != coordinator(r.row.Name) {
			owner[r.row.Name] = r.node
		}
	}
	rows = slices.DeleteFunc(rows, func(r keyedRow[GroupRow]) bool { return owner[r.row.Name] != r.node })
	rows, out.Next = mergePages(rows, lists, reverse, limit)
	out.Groups = make([]GroupRow, len(rows))
	for i := range rows {
		out.Groups[i] = rows[i].row
	}
	return out
}

// keyedRow is a row of a list, with the cursor after it and who told of it.
type keyedRow[T any] struct {
	key  string
	node int32
	row  T
}

// keys are the cursors of a page, in its order, and whether more comes after it.
type keys struct {
	keys []string
	more bool
}

// mergePages puts the rows of pages into their order, and returns the first of them and
// the cursor after the last. Where the page of a broker ended though it has more, nothing
// that comes after may be shown: what it has in between is not known.
func mergePages[T any](rows []keyedRow[T], pages []keys, reverse bool, limit int) (page []keyedRow[T], next string) {
	compare := func(x, y string) int {
		out := compareCursors(x, y)
		if reverse {
			return -out
		}
		return out
	}
	sort.SliceStable(rows, func(i, j int) bool { return compare(rows[i].key, rows[j].key) < 0 })
	more, horizon := false, ""
	for _, p := range pages {
		if !p.more || len(p.keys) == 0 {
			continue
		}
		last := p.keys[len(p.keys)-1]
		if !more || compare(last, horizon) < 0 {
			more, horizon = true, last
		}
	}
	if more {
		beyond := slices.IndexFunc(rows, func(r keyedRow[T]) bool { return compare(r.key, horizon) > 0 })
		if beyond >= 0 {
			rows = rows[:beyond]
		}
		next = horizon
	}
	if len(rows) > limit {
		return rows[:limit], rows[limit-1].key
	}
	return rows, next
}

// compareCursors orders cursors of one list. They were made by brokers, so they can be read.
func compareCursors(x, y string) int {
	a, errA := base64.RawURLEncoding.DecodeString(x)
	b, errB := base64.RawURLEncoding.DecodeString(y)
	if errA != nil || errB != nil {
		return cmp.Compare(x, y)
	}
	return bytes.Compare(a, b)
}

// sum adds numbers of which nil is not known.
func sum(a, b *int) *int {
	if a == nil || b == nil {
		return nil
	}
	n := *a + *b
	return &n
}

// coordinatorOf returns the broker that has a group, metadata.NoBroker if none has.
func (a *api) coordinatorOf(group string) int32 {
	t := a.reads.Image().Topic(metadata.OffsetsTopic)
	if t == nil {
		return metadata.NoBroker
	}
	return t.Partitions[journal.PartitionFor(group, int32(len(t.Partitions)))].Leader
}

// unasked names the other brokers of a cluster in which this one cannot ask any.
func (a *api) unasked(c *call, what string) []Silent {
	if c.note != nil || a.fleet != nil {
		return []Silent{}
	}
	return a.otherBrokers(what)
}
