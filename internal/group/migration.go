package group

import (
	"maps"
	"slices"
	"strings"

	"muster/internal/group/schema"
	"muster/internal/machine"
	"muster/internal/metadata"
	"muster/internal/migration"
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

func (g *classicGroup) largeNow(x *step) tooLarge {
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
func (g *classicGroup) refusedBefore(x *step) string {
	r := g.refusal
	if r == nil || r.large != nil && *r.large != g.largeNow(x) || slices.ContainsFunc(r.because, func(m migrant) bool { return !m.isAsItWas(g) }) {
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

// migrants lists the members of a classic group in the order of their ids.
func (g *classicGroup) migrants() []migrant {
	out := make([]migrant, 0, g.members.len())
	for m := g.members.first; m != nil; m = m.next {
		out = append(out, migrant{m.id, m.subscription(g.protocol), m.assigned})
	}
	slices.SortFunc(out, func(a, b migrant) int { return strings.Compare(a.id, b.id) })
	return out
}

// subscription is what a member says of the protocol that is selected. In a group's
// first join phase none is, and in a later one the member may have others: then it is
// what it says of its first. Kafka knows no answer to the former.
func (m *member) subscription(selected string) []byte {
	if b := m.metadata(selected); b != nil || len(m.protocols) == 0 {
		return b
	}
	return m.protocols[0].metadata
}

// unsettledTombstones removes what was noted of a rebalance.
func (g *classicGroup) unsettledTombstones() (out []machine.Record) {
	if g.rebalancing != nil {
		out = append(out, &schema.RebalanceRecord{Group: g.id})
	}
	for _, id := range slices.Sorted(maps.Keys(g.departed)) {
		out = append(out, &schema.DepartureRecord{Group: g.id, Member: id})
	}
	return out
}
