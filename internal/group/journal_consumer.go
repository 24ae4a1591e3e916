package group

import (
	"cmp"
	"slices"
	"time"

	"muster/internal/group/schema"
	"muster/internal/journal"
	"muster/internal/machine"
)

// Of a consumer group the journal tells why its epoch rose, what the target that was
// made then takes from whom and gives to whom, and when everybody has what they are to
// have. A heartbeat that does none of these writes nothing, so a group that is at rest
// adds nothing to the journal.

// story is what the journal needs to know of a consumer group. It is soft.
type story struct {
	early    []journal.Trigger // reasons for an epoch that has not come yet
	earlyN   int
	looked   *look     // the topics when they were last looked at, nil for never since the load
	before   *look     // what they were before they changed, nil if they have not since the group settled
	assignor string    // of the last target, "" if that is not known
	counted  int       // members when the group was last told of
	under    *underWay // nil if everybody has what they are to have
}

// underWay is what the journal will say of members that are on their way to what they
// are to have.
type underWay struct {
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

func (mem *consumerMember) name() string { return firstCharacters(mem.id, maxWho) }

func (mem *consumerMember) who() journal.Who {
	w := journal.Who{Member: mem.name()}
	if says := mem.says; says != nil {
		w.ClientID, w.Host = firstCharacters(says.ClientID, maxWho), plainHost(says.Host)
		w.Instance = firstCharacters(orEmpty(says.Instance), maxWho)
	}
	return w
}

// blame says why the group will have another epoch. The next one of this step has it
// as a reason.
func blame(x *step, why ...journal.Trigger) { x.why = append(x.why, why...) }

// blameMember is blame of what a member did, or what was done to it.
func blameMember(x *step, kind journal.TriggerKind, mem *consumerMember, add func(*journal.Trigger)) {
	t := journal.Trigger{Kind: kind, Who: mem.who()}
	if kind != journal.TriggerJoined { // It is gone.
		now := mem.now()
		t.Had = len(now.assigned) + len(now.pending)
	}
	if add != nil {
		add(&t)
	}
	blame(x, t)
}

// noteEpoch tells that the group has another epoch, and why.
func (g *consumerGroup) noteEpoch(x *step) {
	g.keepReasons(x)
	s := &g.story
	why, n := s.early, s.earlyN
	s.early, s.earlyN = nil, 0
	if s.under == nil {
		s.under = &underWay{started: x.now, targeted: x.now, before: s.counted}
	}
	u := s.under
	u.whyN += n
	from := len(u.why)
	u.why = append(u.why, why[:min(len(why), maxTriggers-len(u.why))]...)
	for i := from; i < len(u.why); i++ {
		u.why[i].At = nil // This entry tells of it; once is enough.
	}
	e := g.entry(x, journal.KindEpoch)
	e.Before, e.Triggers, e.TriggerN = s.counted, why, n
	s.counted = g.present
	x.out.Notes = append(x.out.Notes, &e)
}

// keepReasons keeps the reasons of this step for the next epoch, which may come later:
// what a member subscribes to by a pattern is found out beside.
func (g *consumerGroup) keepReasons(x *step) {
	s := &g.story
	s.earlyN += len(x.why)
	s.early = append(s.early, x.why[:min(len(x.why), maxTriggers-len(s.early))]...)
	x.why = nil
}

// noteProgress notes how far a heartbeat has brought a member, for what the journal
// will say when everybody has got there: from where it was before, since when.
func (g *consumerGroup) noteProgress(x *step, mem *consumerMember, before *consumerNow, told time.Time) {
	u := g.story.under
	if u == nil {
		return
	}
	now := mem.now()
	for _, p := range now.assigned {
		if !holds(before.assigned, p.part) && !holds(before.pending, p.part) {
			u.moved++
		}
	}
	if before.state == memberUnrevoked && now.state != memberUnrevoked {
		u.held = late(u.held, mem, x.now.Sub(told))
	}
	if mem.settled(g) && (before.state != memberStable || before.epoch != now.epoch) {
		u.slowest = late(u.slowest, mem, x.now.Sub(u.targeted))
	}
	g.noteSettled(x)
}

// late puts a member where it belongs in a list of those who took longest.
func late(list []journal.Late, mem *consumerMember, took time.Duration) []journal.Late {
	if took <= 0 || len(list) == maxSlowest && list[maxSlowest-1].Waited >= took {
		return list
	}
	list = append(list, journal.Late{Who: mem.who(), Waited: took})
	slices.SortStableFunc(list, func(a, b journal.Late) int { return cmp.Compare(b.Waited, a.Waited) })
	return list[:min(len(list), maxSlowest)]
}

// noteSettled tells that everybody has what they are to have, or is gone, once that is
// so.
func (g *consumerGroup) noteSettled(x *step) {
	u := g.story.under
	if u == nil || !g.hasSettled(u) {
		return
	}
	g.story.under, g.story.before, g.story.counted = nil, nil, g.present
	e := g.entry(x, journal.KindSettled)
	e.Started, e.Triggers, e.TriggerN = u.started, u.why, u.whyN
	e.Held, e.Slowest = u.held, u.slowest
	e.Before, e.MoveN, e.PartitionN = u.before, u.moved, len(g.owners)
	x.out.Notes = append(x.out.Notes, &e)
}

// hasSettled says whether everybody has what they are to have. It is asked with each
// heartbeat until then, so it goes on where it was: who has got there stays there,
// until there is another target.
func (g *consumerGroup) hasSettled(u *underWay) bool {
	if g.present == 0 || g.epoch > g.targetEpoch {
		return g.present == 0
	}
	for range g.members {
		if u.next >= len(g.members) {
			u.next = 0
		}
		if m := g.members[u.next]; m.says != nil && !m.settled(g) {
			return false
		}
		u.next++
	}
	return true
}

// noteLoaded tells that a group with members was loaded. If they are on their way to
// what they are to have, they go on, and the journal begins a new account of that.
func (g *consumerGroup) noteLoaded(x *step) {
	if g == nil || g.present == 0 {
		return
	}
	e := g.entry(x, journal.KindLoaded)
	if e.State != consumerStable && g.story.under == nil {
		why := journal.Trigger{Kind: journal.TriggerResumed}
		g.story.under = &underWay{started: x.now, targeted: x.now, before: g.present, why: []journal.Trigger{why}, whyN: 1}
		because(&e, g.story.under.why)
		d := g.differences(x, nil)
		e.Revokes, e.RevokeN = d.revokes()
	}
	x.out.Notes = append(x.out.Notes, &e)
}

// noteUpgraded tells that a classic group with so many members has become a consumer
// group, for whom that was done. The group is one already.
func (g *consumerGroup) noteUpgraded(x *step, by *journal.Who, members int) {
	e := g.entry(x, journal.KindUpgraded)
	e.By, e.Before = by, members
	g.story.counted = members
	x.out.Notes = append(x.out.Notes, &e)
}

// noteDowngraded tells that a consumer group with so many members has become a classic
// group, since the last member of the consumer protocol is gone, or another took its
// place. The group is a classic one already.
func (g *classicGroup) noteDowngraded(x *step, by *journal.Who, members int) {
	e := g.entry(x, journal.KindDowngraded)
	e.By, e.Before = by, members
	x.out.Notes = append(x.out.Notes, &e)
}

// consumerEntry is what all entries of a consumer group have in common.
func (g *consumerGroup) consumerEntry(x *step, kind journal.EntryKind) journal.Entry {
	return journal.Entry{
		Time: x.now, Group: g.id, Kind: kind, Type: journal.TypeConsumer, State: g.stateName(),
		Generation: g.epoch, TargetEpoch: g.targetEpoch, Protocol: g.chosenAssignor(x), Before: g.present, After: g.present,
	}
}

// blameLeave says who left, or who removed whom: a request that comes from elsewhere
// than the member is somebody else's.
func (g *consumerGroup) blameLeave(x *step, r *machine.Request, mem *consumerMember) {
	blameMember(x, journal.TriggerLeft, mem, func(t *journal.Trigger) {
		if r.ClientID != mem.says.ClientID || r.Host != plainHost(mem.says.Host) {
			t.Kind, t.By = journal.TriggerRemoved, by(r)
			return
		}
		t.At = g.atConsumer(x, mem)
	})
}

// blameBeat says what a heartbeat changes of its member, as far as others may have to
// do with it: it is new, or subscribes to something else. A static member that took
// its place again without that is told of at once.
func (g *consumerGroup) blameBeat(x *step, mem *consumerMember, p place, ch change) {
	was := p.known
	switch {
	case p.replaces != nil:
		was = p.replaces
	case was == nil:
		blameMember(x, journal.TriggerJoined, mem, nil)
		return
	}
	t := journal.Trigger{Kind: journal.TriggerChanged, Who: mem.who(), Change: p.change(mem.says)}
	if p.replaces != nil || p.returns {
		t.Kind, t.Was = journal.TriggerReplaced, was.name()
	}
	switch {
	case ch.topics:
		blame(x, t)
	case t.Kind == journal.TriggerReplaced:
		x.note(g, journal.KindReplaced, t)
	}
}

// change is what differs in what a member subscribes to, nil if nothing does.
func (p place) change(says *schema.ConsumerMember) *journal.Change {
	c := &journal.Change{}
	c.TopicsAdded, c.TopicsAddedN = without(says.Topics, p.was.Topics)
	c.TopicsRemoved, c.TopicsRemovedN = without(p.was.Topics, says.Topics)
	if a, b := orEmpty(p.was.Regex), orEmpty(says.Regex); a != b {
		c.RegexBefore, c.Regex = firstCharacters(a, maxReason), firstCharacters(b, maxReason)
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
		p.was, p.returns = holder.says, holder.now().epoch == epochLeaveStatic
	}
}
