package group

import (
	"cmp"
	"slices"
	"time"

	"muster/internal/group/schema"
	"muster/internal/journal"
)

// rebalance collects what the journal will say of a rebalance.
type rebalance struct {
	delay     time.Duration // the initial delay as last armed
	remaining time.Duration // by which the initial delay may still be extended
	started   time.Time
	again     time.Time // when members were last asked to join
	why       []journal.Trigger
	whyN      int
	atN       int // partitions that why names
	before    *schema.Group
	joinedAt  time.Time
	slowest   []journal.Late
	gone      roll // did not join in time, and are out
	absent    roll // did not join either when the join phase last ended, and may still come
}

// beginRebalance starts a new account, or goes on with that of a rebalance that
// had to start over.
func (g *classicGroup) beginRebalance(now time.Time, why []journal.Trigger) {
	if g.rebalance == nil {
		g.rebalance = &rebalance{started: now, before: g.hard}
	}
	g.rebalance.again = now
	told := slices.Clone(why)
	for i := range told {
		told[i].At = nil // The entry of the start tells of it; once is enough.
	}
	g.rebalance.add(told...)
}

func (r *rebalance) add(why ...journal.Trigger) {
	r.whyN += len(why)
	for _, t := range why[:min(maxTriggers-len(r.why), len(why))] {
		if r.atN += len(t.At); r.atN > maxAt {
			t.At = nil
		}
		r.why = append(r.why, t)
	}
}

// roll is a list of those who are not there, as far as there is room, and their
// number.
type roll struct {
	list []journal.Absent
	n    int
}

func (r *roll) add(a journal.Absent) {
	if r.n++; len(r.list) < maxTriggers {
		r.list = append(r.list, a)
	}
}

// missing lists members that have not joined, and those who were told a member
// id and have not joined with it.
func (g *classicGroup) missing() (r roll) {
	for m := g.members.first; m != nil; m = m.next {
		if m.join == 0 {
			r.add(journal.Absent{Who: m.who()})
		}
	}
	for id := range g.pendingIDs() {
		r.add(g.pending[id].absent(id))
	}
	return r
}

// joined notes the end of the join phase, who came last, and who did not come
// though the group has waited: the initial delay waits for nobody.
func (r *rebalance) joined(g *classicGroup, now time.Time) {
	r.absent = roll{}
	if g.previous != Empty {
		r.absent = g.missing()
		for i := range r.absent.list {
			r.absent.list[i].Kept = !r.absent.list[i].Pending
		}
	}
	r.joinedAt = now
	var all []journal.Late
	for m := g.members.first; m != nil; m = m.next {
		if waited := time.UnixMilli(m.asked).Sub(r.again); m.join != 0 && waited > 0 {
			all = append(all, journal.Late{Who: m.who(), Waited: waited})
		}
	}
	slices.SortStableFunc(all, func(a, b journal.Late) int { return cmp.Compare(b.Waited, a.Waited) })
	r.slowest = all[:min(len(all), maxSlowest)]
}

// start writes the entry of a rebalance that begins.
func (g *classicGroup) start(x *step, why []journal.Trigger) {
	e := g.entry(x, journal.KindStarted)
	because(&e, why)
	if g.previous != Empty { // The initial delay waits for nobody.
		missing := g.missing()
		e.Waiting, e.WaitingN = missing.list, missing.n
	}
	x.out.Notes = append(x.out.Notes, &e)
}

// settle writes the entry of a rebalance that has come to its end.
func (g *classicGroup) settle(x *step) {
	r := g.rebalance
	if r == nil {
		return
	}
	g.rebalance = nil
	e := g.entry(x, journal.KindSettled)
	e.Started, e.Triggers, e.TriggerN = r.started, r.why, r.whyN
	e.JoinPhase, e.SyncPhase = r.joinedAt.Sub(r.started), x.now.Sub(r.joinedAt)
	e.Slowest, e.MissedN = r.slowest, r.gone.n+r.absent.n
	e.Missed = slices.Concat(r.gone.list, r.absent.list[:min(len(r.absent.list), maxTriggers-len(r.gone.list))])
	e.Before = 0
	if r.before != nil {
		e.Before = len(r.before.Members)
	}
	if leader := g.members.get(g.leader); leader != nil {
		w := leader.who()
		e.Leader = &w
	}
	if g.protocolType == consumerType {
		e.Moves, e.MoveN, e.PartitionN = moves(r.before, g)
	}
	x.out.Notes = append(x.out.Notes, &e)
}
