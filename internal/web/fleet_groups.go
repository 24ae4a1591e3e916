package web

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"slices"
	"strings"

	"muster/internal/journal"
	"muster/internal/metadata"
	"muster/internal/watch/list"
	"muster/internal/web/fleet"
)

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
	slices.SortStableFunc(rows, func(x, y keyedRow[T]) int { return compare(x.key, y.key) })
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
