package watch

import (
	"slices"
	"strings"

	"muster/internal/watch/lag"
	"muster/internal/watch/list"
)

// Seen is what a watch keeps of a group from pass to pass. Its row never changes, so
// that snapshots share it: a group that rests costs neither memory nor time.
type Seen struct {
	kept      lag.Kept
	row       *list.GroupRow
	pass      uint64 // In which it was last seen.
	elsewhere bool   // It reads partitions that other brokers lead.
}

// quiet says of groups whether their facts are needed. They are if anything but the group
// has changed that these are held against.
func (x *pass) quiet(some []Group) {
	x.w.mu.Lock()
	defer x.w.mu.Unlock()
	for i := range some {
		g := &some[i]
		g.Quiet = lag.Loud
		if g.Seen == nil || !x.sameImage || g.Seen.elsewhere || g.Seen.pass+1 != x.number {
			continue
		}
		if _, moved := x.rebalanced[g.Row.Name]; moved || x.deleted[g.Row.Name] || x.died[g.Row.Name] != nil {
			continue
		}
		g.Quiet = x.w.tracker.Quiet(g.Seen.kept)
	}
}

// again takes in a group that is as it was.
func (x *pass) again(g *Group) {
	s := g.Seen
	x.w.tracker.Again(s.kept, g.Quiet)
	if s.pass = x.number; g.Quiet == lag.Resting {
		return
	}
	row, l := *s.row, s.kept.Lag()
	fill(&row, &l)
	s.row = &row
}

// see notes what was seen of a group.
func (x *pass) see(g *Group) {
	if x.deleted[g.Row.Name] {
		g.Seen = nil
	} else if g.Seen == nil {
		g.Seen = x.w.find(g.Row.Name) // The source has forgotten it.
	}
	if g.Seen == nil || g.Seen.pass == x.number {
		g.Seen = &Seen{}
	}
	s := g.Seen
	if s.pass+1 != x.number { // It was away.
		*s = Seen{}
		x.fresh = append(x.fresh, s)
	}
	s.pass, s.elsewhere, s.kept = x.number, x.elsewhere, x.w.tracker.Keep(g.Row.Name)
	row, l := g.Row, s.kept.Lag()
	fill(&row, &l)
	row.Members, row.Offsets = len(g.Members), int32(len(g.Offsets))
	var topics []string
	if before := s.row; before != nil {
		row.Rebalanced, row.Cause, topics = before.Rebalanced, before.Cause, before.Topics
	}
	if r, ok := x.rebalanced[g.Row.Name]; ok {
		row.Rebalanced, row.Cause = &r.at, r.cause
	}
	row.Topics = x.topicsOf(g, topics)
	s.row = &row
}

// find returns what is kept of a group by its name.
func (w *Watch) find(name string) *Seen {
	i, found := slices.BinarySearchFunc(w.order, name, func(s *Seen, name string) int { return strings.Compare(s.row.Name, name) })
	if !found {
		return nil
	}
	return w.order[i]
}

// summaries brings the groups into the order of their names, those that are gone left out,
// and returns what is said of them. Only those that came are sorted.
func (x *pass) rows() []*list.GroupRow {
	byName := func(a, b *Seen) int { return strings.Compare(a.row.Name, b.row.Name) }
	fresh := map[*Seen]bool{}
	for _, s := range x.fresh {
		fresh[s] = true
	}
	stayed := slices.DeleteFunc(x.w.order, func(s *Seen) bool { return s.pass != x.number || len(fresh) > 0 && fresh[s] })
	slices.SortFunc(x.fresh, byName)
	if len(x.fresh) > 0 {
		stayed = slices.CompactFunc(merge(stayed, x.fresh, byName), func(a, b *Seen) bool { return byName(a, b) == 0 })
	}
	x.w.order = stayed
	out := make([]*list.GroupRow, len(stayed))
	for i, s := range stayed {
		out[i] = s.row
	}
	return out
}

// merge makes one list in order of two.
func merge[T any](a, b []T, compare func(T, T) int) []T {
	out := make([]T, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if compare(a[0], b[0]) <= 0 {
			out, a = append(out, a[0]), a[1:]
		} else {
			out, b = append(out, b[0]), b[1:]
		}
	}
	return append(append(out, a...), b...)
}
