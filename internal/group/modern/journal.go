package modern

import (
	"sort"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/group/kind"
	"muster/internal/journal"
	"muster/internal/machine"
)

// Of such a group the journal tells why its epoch rose, what the target that was
// made then takes from whom and gives to whom, and when everybody has what they are to
// have. A heartbeat that does none of these writes nothing, so a group that is at rest
// adds nothing to the journal.

// account is what the journal needs to know of a group. It is soft.
type account struct {
	triggers     []journal.Trigger // reasons for an epoch that has not come yet
	triggerN     int
	topics       *Topics         // the topics when they were last looked at, nil for never since the load
	TopicsBefore *Topics         // what they were before they changed, nil if they have not since the group settled
	Assignor     string          // of the last target, "" if that is not known
	Counted      int             // members when the group was last told of
	reconciling  *reconciliation // nil if everybody has what they are to have
}

// reconciliation is what the journal will say of members that are on their way to what they
// are to have.
type reconciliation struct {
	started  time.Time
	targeted time.Time // when the last target was made
	why      []journal.Trigger
	whyN     int
	before   int // members
	moved    int // parts that members were given
	held     []journal.Late
	slowest  []journal.Late
	next     int // the member to be looked at next: those before it have what they are to have
}

// Name is the member id as the journal has it.
func (m *Member[P]) Name() string { return kind.Truncate(m.ID, kind.MaxWho) }

// Who is a member as the journal has it.
func Who[P Part[P], M AnyMember[P]](m M) journal.Who {
	w := journal.Who{Member: m.Common().Name()}
	if i, ok := m.Identity(); ok {
		w.ClientID, w.Host = kind.Truncate(i.ClientID, kind.MaxWho), kind.PlainHost(i.Host)
		if i.Instance != nil {
			w.Instance = kind.Truncate(*i.Instance, kind.MaxWho)
		}
	}
	return w
}

// Entry implements kind.Group.
func (g *Group[P, M]) Entry(x *kind.Step, kind journal.EntryKind) journal.Entry {
	if g.Gone {
		return journal.Entry{Time: x.Now, Group: g.ID, Kind: kind, State: stateDead}
	}
	return journal.Entry{
		Time: x.Now, Group: g.ID, Kind: kind, Type: string(g.own.Kind()), State: g.own.StateName(),
		Generation: g.Epoch, TargetEpoch: g.TargetEpoch, Protocol: g.own.Assignor(x), Before: g.Present, After: g.Present,
	}
}

// AddTriggers says why the group will have another epoch. The next one of this step has it
// as a reason.
func AddTriggers(x *kind.Step, why ...journal.Trigger) { x.Why = append(x.Why, why...) }

// AddMemberTrigger is blame of what a member did, or what was done to it.
func AddMemberTrigger[P Part[P], M AnyMember[P]](x *kind.Step, kind journal.TriggerKind, m M, add func(*journal.Trigger)) {
	t := journal.Trigger{Kind: kind, Who: Who[P](m)}
	if kind != journal.TriggerJoined { // It is gone.
		now := m.Common().Now()
		t.Had = len(now.Assigned) + len(now.Pending)
	}
	if add != nil {
		add(&t)
	}
	AddTriggers(x, t)
}

// AddLeaveTrigger says who left, or who removed whom: a request that comes from elsewhere
// than the member is someone else's.
func (g *Group[P, M]) AddLeaveTrigger(x *kind.Step, r *machine.Request, m M) {
	AddMemberTrigger(x, journal.TriggerLeft, m, func(t *journal.Trigger) {
		if i, _ := m.Identity(); r.ClientID != i.ClientID || r.Host != kind.PlainHost(i.Host) {
			t.Kind, t.By = journal.TriggerRemoved, kind.By(r)
			return
		}
		t.At = g.own.Positions(x, m)
	})
}

// noteEpoch tells that the group has another epoch, and why.
func (g *Group[P, M]) noteEpoch(x *kind.Step) {
	g.keepTriggers(x)
	s := &g.Account
	why, n := s.triggers, s.triggerN
	s.triggers, s.triggerN = nil, 0
	if s.reconciling == nil {
		s.reconciling = &reconciliation{started: x.Now, targeted: x.Now, before: s.Counted}
	}
	u := s.reconciling
	u.whyN += n
	from := len(u.why)
	u.why = append(u.why, why[:min(len(why), kind.MaxTriggers-len(u.why))]...)
	for i := from; i < len(u.why); i++ {
		u.why[i].At = nil // This entry tells of it; once is enough.
	}
	e := g.own.Entry(x, journal.KindEpoch)
	e.Before, e.Triggers, e.TriggerN = s.Counted, why, n
	s.Counted = g.Present
	x.Out.Notes = append(x.Out.Notes, &e)
}

// keepTriggers keeps the reasons of this step for the next epoch, which may come later:
// what a member subscribes to by a pattern is found out beside.
func (g *Group[P, M]) keepTriggers(x *kind.Step) {
	s := &g.Account
	s.triggerN += len(x.Why)
	s.triggers = append(s.triggers, x.Why[:min(len(x.Why), kind.MaxTriggers-len(s.triggers))]...)
	x.Why = nil
}

// targeted notes that there is another target, for which everybody is waited anew.
func (g *Group[P, M]) targeted(x *kind.Step, job Job[P]) {
	g.Account.Assignor = job.Assignor()
	if u := g.Account.reconciling; u != nil {
		u.targeted, u.next = x.Now, 0
	}
}

// noteTooLarge tells that a target cannot be stored.
func (g *Group[P, M]) noteTooLarge(x *kind.Step, job Job[P], m M) {
	e := g.own.Entry(x, journal.KindTarget)
	e.Protocol = job.Assignor()
	kind.SetTriggers(&e, []journal.Trigger{{Kind: journal.TriggerTooLarge, Who: Who[P](m), MaxBytes: x.MaxBatch}})
	x.Out.Notes = append(x.Out.Notes, &e)
}

// NoteProgress notes how far a heartbeat has brought a member, for what the journal
// will say when everybody has got there: from where it was before, since when.
func (g *Group[P, M]) NoteProgress(x *kind.Step, m M, before *Current[P], told time.Time) {
	u := g.Account.reconciling
	if u == nil {
		return
	}
	now := m.Common().Now()
	for _, p := range now.Assigned {
		if !Holds(before.Assigned, p.Part) && !Holds(before.Pending, p.Part) {
			u.moved++
		}
	}
	if before.State == Unrevoked && now.State != Unrevoked {
		u.held = addSlowest(u.held, Who[P](m), x.Now.Sub(told))
	}
	if m.Common().HasSettled(g.TargetEpoch) && (before.State != Stable || before.Epoch != now.Epoch) {
		u.slowest = addSlowest(u.slowest, Who[P](m), x.Now.Sub(u.targeted))
	}
	g.noteSettled(x)
}

// addSlowest puts a member where it belongs in a list of those who took longest.
func addSlowest(list []journal.Late, who journal.Who, took time.Duration) []journal.Late {
	if took <= 0 || len(list) == kind.MaxSlowest && list[kind.MaxSlowest-1].Waited >= took {
		return list
	}
	list = append(list, journal.Late{Who: who, Waited: took})
	sort.SliceStable(list, func(i, j int) bool { return list[i].Waited > list[j].Waited })
	return list[:min(len(list), kind.MaxSlowest)]
}

// noteSettled tells that everybody has what they are to have, or is gone, once that is
// so.
func (g *Group[P, M]) noteSettled(x *kind.Step) {
	u := g.Account.reconciling
	if u == nil || !g.hasSettled(u) {
		return
	}
	g.Account.reconciling, g.Account.TopicsBefore, g.Account.Counted = nil, nil, g.Present
	e := g.own.Entry(x, journal.KindSettled)
	e.Started, e.Triggers, e.TriggerN = u.started, u.why, u.whyN
	e.Held, e.Slowest = u.held, u.slowest
	e.Before, e.MoveN = u.before, u.moved
	for _, m := range g.Members {
		now := m.Common().Now()
		e.PartitionN += len(now.Assigned) + len(now.Pending)
	}
	x.Out.Notes = append(x.Out.Notes, &e)
}

// hasSettled says whether everybody has what they are to have. It is asked with each
// heartbeat until then, so it goes on where it was: who has got there stays there,
// until there is another target.
func (g *Group[P, M]) hasSettled(u *reconciliation) bool {
	if g.Present == 0 || g.Epoch > g.TargetEpoch {
		return g.Present == 0
	}
	for range g.Members {
		if u.next >= len(g.Members) {
			u.next = 0
		}
		if m := g.Members[u.next]; hasJoined(m) && !m.Common().HasSettled(g.TargetEpoch) {
			return false
		}
		u.next++
	}
	return true
}

// noteLoaded tells that a group with members was loaded. If they are on their way to
// what they are to have, they go on, and the journal begins a new account of that.
func (g *Group[P, M]) noteLoaded(x *kind.Step) {
	if g.Present == 0 {
		return
	}
	e := g.own.Entry(x, journal.KindLoaded)
	if e.State != StateStable && g.Account.reconciling == nil {
		why := journal.Trigger{Kind: journal.TriggerResumed}
		g.Account.reconciling = &reconciliation{started: x.Now, targeted: x.Now, before: g.Present, why: []journal.Trigger{why}, whyN: 1}
		kind.SetTriggers(&e, g.Account.reconciling.why)
		e.Revokes, e.RevokeN = g.own.Revokes(x)
	}
	x.Out.Notes = append(x.Out.Notes, &e)
}

// NoteRefused tells of a request that was refused since another has its instance id:
// two processes run that are one to the group. Each of them is told of once, however
// often it comes.
func (g *Group[P, M]) NoteRefused(x *kind.Step, r *machine.Request, c Claim, request string, err *Refusal) {
	reason := journal.TriggerUnreleased
	switch err.Error {
	case kerr.UnreleasedInstanceID:
	case kerr.FencedInstanceID:
		reason = journal.TriggerFenced
	default:
		return
	}
	holder := g.Instances[*c.Instance]
	mem := holder.Common()
	if mem.Refused == nil {
		mem.Refused = &kind.Fencing{}
	}
	name := kind.Truncate(c.Member, kind.MaxWho)
	if !mem.Refused.IsNew(name) {
		return
	}
	by := Who[P](holder)
	x.Note(g.own, journal.KindFenced, journal.Trigger{
		Kind: reason, By: &by, Request: request,
		Who: journal.Who{Member: name, ClientID: kind.Truncate(r.ClientID, kind.MaxWho), Host: kind.PlainHost(r.Host), Instance: kind.Truncate(*c.Instance, kind.MaxWho)},
	})
}
