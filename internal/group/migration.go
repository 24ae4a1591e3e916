package group

import (
	"slices"

	"muster/internal/group/schema"
	"muster/internal/machine"
	"muster/internal/metadata"
	"muster/internal/migration"
)

// MigrationPolicy says in which directions groups that have members go over from one
// protocol to the other: group.consumer.migration.policy.
type MigrationPolicy = migration.Policy

// The policies.
const (
	MigrateBoth      = migration.Both
	MigrateUpgrade   = migration.Upgrade
	MigrateDowngrade = migration.Downgrade
	MigrateNever     = migration.Never
)

// migrant is what decides whether a member of a classic group can go on in a consumer
// group: what it subscribes to, and what it was assigned, in the bytes of its protocol.
type migrant struct {
	id           string
	subscription []byte
	assignment   []byte // empty if it was not assigned anything yet
}

// upgradeObstacles says what stands in the way of a classic group that is to become a
// consumer group while it has members, all of it. If nothing does, a member of the
// consumer protocol may join it.
func upgradeObstacles(g migration.Group, members []migrant) []migration.Obstacle {
	out := migration.OfGroup(g)
	if g.ProtocolType != consumerType {
		return out // What its members say means something else.
	}
	read := make([]migration.Member, len(members))
	for i := range members {
		read[i] = members[i].read()
	}
	return append(out, migration.OfMembers(read)...)
}

// read reads what a member says.
func (m *migrant) read() migration.Member {
	out := migration.Member{ID: m.id}
	_, err := readWants(m.subscription)
	out.UnreadableSubscription = err != nil
	if len(m.assignment) == 0 {
		return out
	}
	a, ok := parseAssignment(m.assignment)
	if out.UnreadableAssignment = !ok; !ok {
		return out
	}
	out.UserData = len(a.UserData) > 0
	for _, t := range a.Topics {
		for _, n := range t.Partitions {
			out.Assigned = append(out.Assigned, migration.Partition{Topic: t.Topic, Number: n})
		}
	}
	return out
}

// noUpgrade is why a classic group could not become a consumer group, and what of the group
// that follows from. To find it out takes what all members say and were assigned, and
// whoever is refused comes again and again: as long as this is as it was, so is the
// answer.
type noUpgrade struct {
	reason  string
	because []migrant // what the members say that stand in the way
	large   *tooLarge // nil if that is not the reason
}

// tooLarge is when a group was too large for a record batch. In the middle of a join phase
// members may come to say less, which is seen when that is over.
type tooLarge struct {
	hard     *schema.Group
	state    State
	members  int
	image    *metadata.Image
	maxBatch int
}

func (x *step) largeNow(g *classicGroup) tooLarge {
	return tooLarge{g.hard, g.state, g.members.len(), x.image, x.maxBatch}
}

// refusedFor makes a refusal of what stands in the way.
func (g *classicGroup) refusedFor(o migration.Obstacle) *noUpgrade {
	r := &noUpgrade{reason: o.Reason}
	for _, id := range []string{o.Member, o.Other} {
		if m := g.members.get(id); m != nil {
			r.because = append(r.because, migrant{m.id, m.subscription(g.protocol), m.assigned})
		}
	}
	return r
}

// refusedBefore is why the group could not become a consumer group when that was last tried,
// "" if it may be able to since.
func (x *step) refusedBefore(g *classicGroup) string {
	r := g.refusal
	if r == nil || r.large != nil && *r.large != x.largeNow(g) || slices.ContainsFunc(r.because, func(m migrant) bool { return !m.isAsItWas(g) }) {
		g.refusal = nil
		return ""
	}
	return r.reason
}

// isAsItWas says whether a member says what it said: the very same bytes, which are never
// changed, only replaced.
func (m *migrant) isAsItWas(g *classicGroup) bool {
	now := g.members.get(m.id)
	return now != nil && identical(now.subscription(g.protocol), m.subscription) && identical(now.assigned, m.assignment)
}

func identical(a, b []byte) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }

// fitsUpgraded says whether a consumer group that a classic one becomes can be stored.
func (x *step) fitsUpgraded(g *classicGroup, records []machine.Record) bool {
	if x.maxBatch > 0 && (&machine.Batch{Records: records, Whole: true}).Size() > x.maxBatch {
		return false
	}
	return !slices.ContainsFunc(records, func(r machine.Record) bool {
		t, ok := r.(*schema.ConsumerTargetRecord)
		return ok && !x.fitsHeld(g.id, t.Member, partsOf(t.Value.Assigned))
	})
}
