package meter

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// LongestName is how long the name of a group may be that is counted by itself: names
// may have 32,767 bytes, and each metric of a group repeats it.
const LongestName = 256

// forgetAfter is for how long the rebalances of a group are kept that no one knows. The
// next look at groups may not have seen a new one yet.
const forgetAfter = 10 * time.Minute

// Groups counts rebalances. Groups do not rebalance so often that a lock would matter.
type Groups struct {
	mu     sync.Mutex
	groups map[string]*rebalances
	phases map[string]*Histogram // It never changes.
}

// The phases of rebalances: members are waited for, then the leader; in groups of the
// consumer protocol there is but one, until everybody has what they are to have.
const (
	Join      = "join"
	Sync      = "sync"
	Reconcile = "reconcile"
)

// rebalances are those of a group.
type rebalances struct {
	list []Rebalances // In order of trigger. It is made anew with each change, since others read it.
	last time.Time
}

// Rebalances is how often something began one.
type Rebalances struct {
	Trigger string
	Count   uint64
}

// Began counts a rebalance by what began it.
func (g *Groups) Began(group, trigger string, now time.Time) {
	if len(group) > LongestName {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	r := g.groups[group]
	if r == nil {
		r = &rebalances{}
		g.groups[strings.Clone(group)] = r
	}
	i, known := slices.BinarySearchFunc(r.list, trigger, func(r Rebalances, t string) int { return strings.Compare(r.Trigger, t) })
	if known {
		r.list = slices.Clone(r.list)
	} else {
		r.list = slices.Insert(slices.Clip(r.list), i, Rebalances{Trigger: trigger})
	}
	r.list[i].Count++
	r.last = now
}

// Took counts how long a phase of a rebalance took.
func (g *Groups) Took(phase string, d time.Duration) { g.phases[phase].Observe(d) }

// Gone forgets a group.
func (g *Groups) Gone(group string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.groups, group)
}

// Keep forgets the groups that are not to be kept and have not rebalanced lately.
func (g *Groups) Keep(now time.Time, keep func(group string) bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	maps.DeleteFunc(g.groups, func(name string, r *rebalances) bool { return now.Sub(r.last) > forgetAfter && !keep(name) })
}

// Read returns the rebalances of all groups, which no one may change.
func (g *Groups) Read() map[string][]Rebalances {
	g.mu.Lock()
	defer g.mu.Unlock()
	out := make(map[string][]Rebalances, len(g.groups))
	for name, r := range g.groups {
		out[name] = r.list
	}
	return out
}

// Phases returns how long the phases of rebalances took.
func (g *Groups) Phases() map[string]Durations {
	out := make(map[string]Durations, len(g.phases))
	for phase, h := range g.phases {
		out[phase] = h.Read()
	}
	return out
}
