package classic

import (
	"maps"
	"slices"
	"sort"

	"muster/internal/group/kind"
	"muster/internal/group/schema"
	"muster/internal/group/subscription"
	"muster/internal/machine"
	"muster/internal/metadata"
	"muster/internal/migration"
)

// Migrant is what decides whether a member of a classic group can go on in a consumer
// group: what it subscribes to, and what it was assigned, in the bytes of its protocol.
type Migrant struct {
	ID           string
	Subscription []byte
	Assignment   []byte // empty if it was not assigned anything yet
}

// UpgradeObstacles says what stands in the way of a classic group that is to become a
// consumer group while it has members, all of it. If nothing does, a member of the
// consumer protocol may join it.
func UpgradeObstacles(g migration.Group, members []Migrant) []migration.Obstacle {
	out := migration.OfGroup(g)
	if g.ProtocolType != subscription.ConsumerType {
		return out // What its members say means something else.
	}
	read := make([]migration.Member, len(members))
	for i := range members {
		read[i] = members[i].read()
	}
	return append(out, migration.OfMembers(read)...)
}

// read reads what a member says.
func (m *Migrant) read() migration.Member {
	out := migration.Member{ID: m.ID}
	_, err := subscription.Read(m.Subscription)
	out.UnreadableSubscription = err != nil
	if len(m.Assignment) == 0 {
		return out
	}
	a, ok := subscription.ParseAssignment(m.Assignment)
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

// NoUpgrade is why a classic group could not become a consumer group, and what of the group
// that follows from. To find it out takes what all members say and were assigned, and
// whoever is refused comes again and again: as long as this is as it was, so is the
// answer.
type NoUpgrade struct {
	Reason  string
	because []Migrant // what the members say that stand in the way
	Large   *tooLarge // nil if that is not the reason
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

func (g *Group) LargeNow(x *kind.Step) tooLarge {
	return tooLarge{g.Hard, g.State, g.Members.Len(), x.Image, x.MaxBatch}
}

// RefusedFor makes a refusal of what stands in the way.
func (g *Group) RefusedFor(o migration.Obstacle) *NoUpgrade {
	r := &NoUpgrade{Reason: o.Reason}
	for _, id := range []string{o.Member, o.Other} {
		if m := g.Members.Get(id); m != nil {
			r.because = append(r.because, Migrant{m.ID, m.subscription(g.Protocol), m.Assigned})
		}
	}
	return r
}

// RefusedBefore is why the group could not become a consumer group when that was last tried,
// "" if it may be able to since.
func (g *Group) RefusedBefore(x *kind.Step) string {
	r := g.Refusal
	if r == nil || r.Large != nil && *r.Large != g.LargeNow(x) || slices.ContainsFunc(r.because, func(m Migrant) bool { return !m.isAsItWas(g) }) {
		g.Refusal = nil
		return ""
	}
	return r.Reason
}

// isAsItWas says whether a member says what it said: the very same bytes, which are never
// changed, only replaced.
func (m *Migrant) isAsItWas(g *Group) bool {
	now := g.Members.Get(m.ID)
	return now != nil && identical(now.subscription(g.Protocol), m.Subscription) && identical(now.Assigned, m.Assignment)
}

func identical(a, b []byte) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }

// Migrants lists the members of a classic group in the order of their ids.
func (g *Group) Migrants() []Migrant {
	out := make([]Migrant, 0, g.Members.Len())
	for m := g.Members.First; m != nil; m = m.Next {
		out = append(out, Migrant{m.ID, m.subscription(g.Protocol), m.Assigned})
	}
	sort.Slice(out, func(i, j int) bool { return out[i].ID < out[j].ID })
	return out
}

// subscription is what a member says of the protocol that is selected. In a group's
// first join phase none is, and in a later one the member may have others: then it is
// what it says of its first. Kafka knows no answer to the former.
func (m *Member) subscription(selected string) []byte {
	if b := m.Metadata(selected); b != nil || len(m.Protocols) == 0 {
		return b
	}
	return m.Protocols[0].Metadata
}

// UnsettledTombstones removes what was noted of a rebalance.
func (g *Group) UnsettledTombstones() (out []machine.Record) {
	if g.rebalancing != nil {
		out = append(out, &schema.RebalanceRecord{Group: g.ID})
	}
	for _, id := range slices.Sorted(maps.Keys(g.departed)) {
		out = append(out, &schema.DepartureRecord{Group: g.ID, Member: id})
	}
	return out
}
