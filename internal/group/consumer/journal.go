package consumer

import (
	"cmp"
	"slices"
	"time"

	"muster/internal/group/classic"
	"muster/internal/group/kind"
	"muster/internal/group/modern"
	"muster/internal/group/schema"
	"muster/internal/journal"
	"muster/internal/machine"
)

// Of a consumer group the journal tells why its epoch rose, what the target that was
// made then takes from whom and gives to whom, and when everybody has what they are to
// have. A heartbeat that does none of these writes nothing, so a group that is at rest
// adds nothing to the journal.

// account is what the journal needs to know of a consumer group. It is soft.
type account struct {
	triggers     []journal.Trigger // reasons for an epoch that has not come yet
	triggerN     int
	topics       *modern.Topics  // the topics when they were last looked at, nil for never since the load
	topicsBefore *modern.Topics  // what they were before they changed, nil if they have not since the group settled
	assignor     string          // of the last target, "" if that is not known
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
	moved    int // partitions that members were given
	held     []journal.Late
	slowest  []journal.Late
	next     int // the member to be looked at next: those before it have what they are to have
}

func (mem *Member) name() string { return kind.Truncate(mem.ID, kind.MaxWho) }

func (mem *Member) who() journal.Who {
	w := journal.Who{Member: mem.name()}
	if meta := mem.Metadata; meta != nil {
		w.ClientID, w.Host = kind.Truncate(meta.ClientID, kind.MaxWho), kind.PlainHost(meta.Host)
		w.Instance = kind.Truncate(OrEmpty(meta.Instance), kind.MaxWho)
	}
	return w
}

// addTriggers says why the group will have another epoch. The next one of this step has it
// as a reason.
func addTriggers(x *kind.Step, why ...journal.Trigger) { x.Why = append(x.Why, why...) }

// addMemberTrigger is blame of what a member did, or what was done to it.
func addMemberTrigger(x *kind.Step, kind journal.TriggerKind, mem *Member, add func(*journal.Trigger)) {
	t := journal.Trigger{Kind: kind, Who: mem.who()}
	if kind != journal.TriggerJoined { // It is gone.
		now := mem.Now()
		t.Had = len(now.Assigned) + len(now.Pending)
	}
	if add != nil {
		add(&t)
	}
	addTriggers(x, t)
}

// noteEpoch tells that the group has another epoch, and why.
func (g *Group) noteEpoch(x *kind.Step) {
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
	e := g.Entry(x, journal.KindEpoch)
	e.Before, e.Triggers, e.TriggerN = s.Counted, why, n
	s.Counted = g.Present
	x.Out.Notes = append(x.Out.Notes, &e)
}

// keepTriggers keeps the reasons of this step for the next epoch, which may come later:
// what a member subscribes to by a pattern is found out beside.
func (g *Group) keepTriggers(x *kind.Step) {
	s := &g.Account
	s.triggerN += len(x.Why)
	s.triggers = append(s.triggers, x.Why[:min(len(x.Why), kind.MaxTriggers-len(s.triggers))]...)
	x.Why = nil
}

// noteProgress notes how far a heartbeat has brought a member, for what the journal
// will say when everybody has got there: from where it was before, since when.
func (g *Group) noteProgress(x *kind.Step, mem *Member, before *modern.Current, told time.Time) {
	u := g.Account.reconciling
	if u == nil {
		return
	}
	now := mem.Now()
	for _, p := range now.Assigned {
		if !modern.Holds(before.Assigned, p.Partition) && !modern.Holds(before.Pending, p.Partition) {
			u.moved++
		}
	}
	if before.State == modern.Unrevoked && now.State != modern.Unrevoked {
		u.held = addSlowest(u.held, mem, x.Now.Sub(told))
	}
	if mem.HasSettled(g.TargetEpoch) && (before.State != modern.Stable || before.Epoch != now.Epoch) {
		u.slowest = addSlowest(u.slowest, mem, x.Now.Sub(u.targeted))
	}
	g.noteSettled(x)
}

// addSlowest puts a member where it belongs in a list of those who took longest.
func addSlowest(list []journal.Late, mem *Member, took time.Duration) []journal.Late {
	if took <= 0 || len(list) == kind.MaxSlowest && list[kind.MaxSlowest-1].Waited >= took {
		return list
	}
	list = append(list, journal.Late{Who: mem.who(), Waited: took})
	slices.SortStableFunc(list, func(a, b journal.Late) int { return cmp.Compare(b.Waited, a.Waited) })
	return list[:min(len(list), kind.MaxSlowest)]
}

// noteSettled tells that everybody has what they are to have, or is gone, once that is
// so.
func (g *Group) noteSettled(x *kind.Step) {
	u := g.Account.reconciling
	if u == nil || !g.hasSettled(u) {
		return
	}
	g.Account.reconciling, g.Account.topicsBefore, g.Account.Counted = nil, nil, g.Present
	e := g.Entry(x, journal.KindSettled)
	e.Started, e.Triggers, e.TriggerN = u.started, u.why, u.whyN
	e.Held, e.Slowest = u.held, u.slowest
	e.Before, e.MoveN, e.PartitionN = u.before, u.moved, len(g.Owners)
	x.Out.Notes = append(x.Out.Notes, &e)
}

// hasSettled says whether everybody has what they are to have. It is asked with each
// heartbeat until then, so it goes on where it was: who has got there stays there,
// until there is another target.
func (g *Group) hasSettled(u *reconciliation) bool {
	if g.Present == 0 || g.Epoch > g.TargetEpoch {
		return g.Present == 0
	}
	for range g.Members {
		if u.next >= len(g.Members) {
			u.next = 0
		}
		if m := g.Members[u.next]; m.Metadata != nil && !m.HasSettled(g.TargetEpoch) {
			return false
		}
		u.next++
	}
	return true
}

// noteLoaded tells that a group with members was loaded. If they are on their way to
// what they are to have, they go on, and the journal begins a new account of that.
func (g *Group) noteLoaded(x *kind.Step) {
	if g == nil || g.Present == 0 {
		return
	}
	e := g.Entry(x, journal.KindLoaded)
	if e.State != StateStable && g.Account.reconciling == nil {
		why := journal.Trigger{Kind: journal.TriggerResumed}
		g.Account.reconciling = &reconciliation{started: x.Now, targeted: x.Now, before: g.Present, why: []journal.Trigger{why}, whyN: 1}
		kind.SetTriggers(&e, g.Account.reconciling.why)
		d := g.differences(x, nil)
		e.Revokes, e.RevokeN = d.revokes()
	}
	x.Out.Notes = append(x.Out.Notes, &e)
}

// NoteUpgraded tells that a classic group with so many members has become a consumer
// group, for whom that was done. The group is one already.
func (g *Group) NoteUpgraded(x *kind.Step, by *journal.Who, members int) {
	e := g.Entry(x, journal.KindUpgraded)
	e.By, e.Before = by, members
	g.Account.Counted = members
	x.Out.Notes = append(x.Out.Notes, &e)
}

// NoteDowngraded tells that a consumer group with so many members has become a classic
// group, since the last member of the consumer protocol is gone, or another took its
// place. The group is a classic one already.
func NoteDowngraded(x *kind.Step, g *classic.Group, by *journal.Who, members int) {
	e := g.Entry(x, journal.KindDowngraded)
	e.By, e.Before = by, members
	x.Out.Notes = append(x.Out.Notes, &e)
}

// journalEntry is what all entries of a consumer group have in common.
func (g *Group) journalEntry(x *kind.Step, kind journal.EntryKind) journal.Entry {
	return journal.Entry{
		Time: x.Now, Group: g.ID, Kind: kind, Type: journal.TypeConsumer, State: g.StateName(),
		Generation: g.Epoch, TargetEpoch: g.TargetEpoch, Protocol: g.chosenAssignor(x), Before: g.Present, After: g.Present,
	}
}

// addLeaveTrigger says who left, or who removed whom: a request that comes from elsewhere
// than the member is someone else's.
func (g *Group) addLeaveTrigger(x *kind.Step, r *machine.Request, mem *Member) {
	addMemberTrigger(x, journal.TriggerLeft, mem, func(t *journal.Trigger) {
		if r.ClientID != mem.Metadata.ClientID || r.Host != kind.PlainHost(mem.Metadata.Host) {
			t.Kind, t.By = journal.TriggerRemoved, kind.By(r)
			return
		}
		t.At = g.positions(x, mem)
	})
}

// addChangeTrigger says what a heartbeat changes of its member, as far as others may have to
// do with it: it is new, or subscribes to something else. A static member that took
// its place again without that is told of at once.
func (g *Group) addChangeTrigger(x *kind.Step, mem *Member, p place, ch change) {
	was := p.known
	switch {
	case p.replaces != nil:
		was = p.replaces
	case was == nil:
		addMemberTrigger(x, journal.TriggerJoined, mem, nil)
		return
	}
	t := journal.Trigger{Kind: journal.TriggerChanged, Who: mem.who(), Change: p.change(mem.Metadata)}
	if p.replaces != nil || p.returns {
		t.Kind, t.Was = journal.TriggerReplaced, was.name()
	}
	switch {
	case ch.topics:
		addTriggers(x, t)
	case t.Kind == journal.TriggerReplaced:
		x.Note(g, journal.KindReplaced, t)
	}
}

// change is what differs in what a member subscribes to, nil if nothing does.
func (p place) change(meta *schema.ConsumerMember) *journal.Change {
	c := &journal.Change{}
	c.TopicsAdded, c.TopicsAddedN = kind.Without(meta.Topics, p.before.Topics)
	c.TopicsRemoved, c.TopicsRemovedN = kind.Without(p.before.Topics, meta.Topics)
	if a, b := OrEmpty(p.before.Regex), OrEmpty(meta.Regex); a != b {
		c.RegexBefore, c.Regex = kind.Truncate(a, kind.MaxReason), kind.Truncate(b, kind.MaxReason)
	}
	if c.TopicsAddedN+c.TopicsRemovedN == 0 && c.Regex == c.RegexBefore {
		return nil
	}
	return c
}

// remember notes what the journal compares with, before the heartbeat changes it.
func (p *place) remember() {
	holder := p.known
	if p.replaces != nil {
		holder = p.replaces
	}
	if holder != nil {
		p.before, p.returns = holder.Metadata, holder.Now().Epoch == modern.EpochLeaveStatic
	}
}
