package consumer

import (
	"muster/internal/group/classic"
	"muster/internal/group/kind"
	"muster/internal/group/modern"
	"muster/internal/group/schema"
	"muster/internal/journal"
)

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

// addChangeTrigger says what a heartbeat changes of its member, as far as others may have to
// do with it: it is new, or subscribes to something else. A static member that took
// its place again without that is told of at once.
func (g *Group) addChangeTrigger(x *kind.Step, mem *Member, p place, ch modern.Change) {
	was := p.Known
	switch {
	case p.Replaces != nil:
		was = p.Replaces
	case was == nil:
		modern.AddMemberTrigger(x, journal.TriggerJoined, mem, nil)
		return
	}
	t := journal.Trigger{Kind: journal.TriggerChanged, Who: modern.Who(mem), Change: p.change(mem.Metadata)}
	if p.Replaces != nil || p.returns {
		t.Kind, t.Was = journal.TriggerReplaced, was.Name()
	}
	switch {
	case ch.Topics:
		modern.AddTriggers(x, t)
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
	holder := p.Known
	if p.Replaces != nil {
		holder = p.Replaces
	}
	if holder != nil {
		p.before, p.returns = holder.Metadata, holder.Now().Epoch == modern.EpochLeaveStatic
	}
}
