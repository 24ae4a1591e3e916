package watch

import (
	"slices"
	"strings"

	"muster/internal/watch/lag"
	"muster/internal/watch/list"
)

// Seen is what a watch keeps of a group from pass to pass. Its summary never changes, so
// that snapshots share it: a group that rests costs neither memory nor time.
type Seen struct {
	kept      lag.Kept
	summary   *list.Summary
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
		if _, moved := x.happened[g.Name]; moved || x.deleted[g.Name] || x.died[g.Name] != nil {
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
	before := s.summary
	sum := summaryOf(s.kept.Lag())
	sum.Name, sum.Type, sum.State, sum.Members = before.Name, before.Type, before.State, before.Members
	sum.Rebalanced, sum.Cause, sum.Topics, sum.Offsets = before.Rebalanced, before.Cause, before.Topics, before.Offsets
	s.summary = sum
}

// see notes what was seen of a group.
func (x *pass) see(g *Group) {
	if x.deleted[g.Name] {
		g.Seen = nil
	} else if g.Seen == nil {
		g.Seen = x.w.find(g.Name) // The source has forgotten it.
	}
	if g.Seen == nil || g.Seen.pass == x.number {
		g.Seen = &Seen{}
	}
	s := g.Seen
	if s.pass+1 != x.number { // It was away.
		*s = Seen{}
		x.fresh = append(x.fresh, s)
	}
	s.pass, s.elsewhere, s.kept = x.number, x.elsewhere, x.w.tracker.Keep(g.Name)
	sum := summaryOf(s.kept.Lag())
	sum.Name, sum.Type, sum.State, sum.Members = g.Name, g.Type, g.State, len(g.Members)
	sum.Offsets = int32(len(g.Offsets))
	var topics []string
	if before := s.summary; before != nil {
		sum.Rebalanced, sum.Cause, topics = before.Rebalanced, before.Cause, before.Topics
	}
	if r, ok := x.happened[g.Name]; ok {
		sum.Rebalanced, sum.Cause = r.at, r.cause
	}
	sum.Topics = x.topicsOf(g, topics)
	s.summary = sum
}

// find returns what is kept of a group by its name.
func (w *Watch) find(name string) *Seen {
	i, found := slices.BinarySearchFunc(w.order, name, func(s *Seen, name string) int { return strings.Compare(s.summary.Name, name) })
	if !found {
		return nil
	}
	return w.order[i]
}

// summaries brings the groups into the order of their names, those that are gone left out,
// and returns what is said of them. Only those that came are sorted.
func (x *pass) summaries() []*list.Summary {
	byName := func(a, b *Seen) int { return strings.Compare(a.summary.Name, b.summary.Name) }
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
	out := make([]*list.Summary, len(stayed))
	for i, s := range stayed {
		out[i] = s.summary
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
