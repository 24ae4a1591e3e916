package classic

import (
	"slices"
	"sort"
	"time"

	"muster/internal/group/kind"
	"muster/internal/group/schema"
	"muster/internal/group/subscription"
	"muster/internal/journal"
)

// Rebalance collects what the journal will say of a rebalance.
type Rebalance struct {
	delay     time.Duration // the initial delay as last armed
	remaining time.Duration // by which the initial delay may still be extended
	started   time.Time
	again     time.Time // when members were last asked to join
	Why       []journal.Trigger
	whyN      int
	atN       int // partitions that why names
	before    *schema.Group
	joinedAt  time.Time
	slowest   []journal.Late
	gone      absentees // did not join in time, and are out
	absent    absentees // did not join either when the join phase last ended, and may still come
}

// beginRebalance starts a new account, or goes on with that of a rebalance that
// had to start over.
func (g *Group) beginRebalance(now time.Time, why []journal.Trigger) {
	if g.Rebalance == nil {
		g.Rebalance = &Rebalance{started: now, before: g.Hard}
	}
	g.Rebalance.again = now
	told := slices.Clone(why)
	for i := range told {
		told[i].At = nil // The entry of the start tells of it; once is enough.
	}
	g.Rebalance.Add(told...)
}

func (r *Rebalance) Add(why ...journal.Trigger) {
	r.whyN += len(why)
	for _, t := range why[:min(kind.MaxTriggers-len(r.Why), len(why))] {
		if r.atN += len(t.At); r.atN > kind.MaxAt {
			t.At = nil
		}
		r.Why = append(r.Why, t)
	}
}

// absentees is a list of those who are not there, as far as there is room, and their
// number.
type absentees struct {
	list []journal.Absent
	n    int
}

func (r *absentees) add(a journal.Absent) {
	if r.n++; len(r.list) < kind.MaxTriggers {
		r.list = append(r.list, a)
	}
}

// missing lists members that have not joined, and those who were told a member
// id and have not joined with it.
func (g *Group) missing() (r absentees) {
	for m := g.Members.First; m != nil; m = m.Next {
		if m.Join == 0 {
			r.add(journal.Absent{Who: m.Who()})
		}
	}
	for id := range g.PendingIDs() {
		r.add(g.Pending[id].absent(id))
	}
	return r
}

// joined notes the end of the join phase, who came last, and who did not come
// though the group has waited: the initial delay waits for no one.
func (r *Rebalance) joined(g *Group, now time.Time) {
	r.absent = absentees{}
	if g.Previous != Empty {
		r.absent = g.missing()
		for i := range r.absent.list {
			r.absent.list[i].Kept = !r.absent.list[i].Pending
		}
	}
	r.joinedAt = now
	var all []journal.Late
	for m := g.Members.First; m != nil; m = m.Next {
		if waited := time.UnixMilli(m.JoinedAt).Sub(r.again); m.Join != 0 && waited > 0 {
			all = append(all, journal.Late{Who: m.Who(), Waited: waited})
		}
	}
	sort.SliceStable(all, func(i, j int) bool { return all[i].Waited > all[j].Waited })
	r.slowest = all[:min(len(all), kind.MaxSlowest)]
}

// noteStarted writes the entry of a rebalance that begins.
func (g *Group) noteStarted(x *kind.Step, why []journal.Trigger) {
	e := g.Entry(x, journal.KindStarted)
	kind.SetTriggers(&e, why)
	if g.Previous != Empty { // The initial delay waits for no one.
		missing := g.missing()
		e.Waiting, e.WaitingN = missing.list, missing.n
	}
	x.Out.Notes = append(x.Out.Notes, &e)
}

// noteSettled writes the entry of a rebalance that has come to its end.
func (g *Group) noteSettled(x *kind.Step) {
	r := g.Rebalance
	if r == nil {
		return
	}
	g.Rebalance = nil
	e := g.Entry(x, journal.KindSettled)
	e.Started, e.Triggers, e.TriggerN = r.started, r.Why, r.whyN
	e.JoinPhase, e.SyncPhase = r.joinedAt.Sub(r.started), x.Now.Sub(r.joinedAt)
	e.Slowest, e.MissedN = r.slowest, r.gone.n+r.absent.n
	e.Missed = slices.Concat(r.gone.list, r.absent.list[:min(len(r.absent.list), kind.MaxTriggers-len(r.gone.list))])
	e.Before = 0
	if r.before != nil {
		e.Before = len(r.before.Members)
	}
	if leader := g.Members.Get(g.Leader); leader != nil {
		w := leader.Who()
		e.Leader = &w
	}
	if g.ProtocolType == subscription.ConsumerType {
		e.Moves, e.MoveN, e.PartitionN = moves(r.before, g)
	}
	x.Out.Notes = append(x.Out.Notes, &e)
}
