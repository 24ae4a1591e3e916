package modern

import (
	"slices"
	"strings"

	"muster/internal/group/kind"
	"muster/internal/metadata"
)

// Group is what a group is in which the coordinator assigns. There is no generation: the group
// has an epoch, which rises with each change of who wants what; the target assignment has the
// epoch that it was made for; and each member comes to that epoch by itself, heartbeat by
// heartbeat. A kind embeds it, with what its members are given and what they are.
type Group[P Part[P], M AnyMember[P]] struct {
	kind.Base
	own Kind[P, M]

	// Hard state: what the records say.
	Epochs
	Members []M // in the order of their ids

	// What follows from the hard state.
	Instances map[string]M // by group instance id
	Present   int          // members that have joined

	// Soft state.
	Seen     *metadata.Image // which the hash was last compared with, nil for none
	Run      *Run[P, M]      // of the assignor, nil if none is under way
	tooLarge int32           // the epoch whose target cannot be stored, 0 if none
	Account  account         // for the journal
	unheard  int             // members that were loaded and not heard of since
	Changes  uint64          // how often the hard state has changed
}

// Init makes it the group of a kind, that takes over what another had of offsets.
func (g *Group[P, M]) Init(own Kind[P, M], b kind.Base) {
	g.own, g.Base, g.Epochs, g.Instances = own, b, NewEpochs(), map[string]M{}
}

// find returns where a member is, or would be, among the members.
func (g *Group[P, M]) find(id string) (int, bool) {
	return slices.BinarySearchFunc(g.Members, id, func(m M, id string) int { return strings.Compare(m.Common().ID, id) })
}

// Member returns a member that has joined, the zero value if there is none of that id.
func (g *Group[P, M]) Member(id string) (none M) {
	if i, ok := g.find(id); ok && hasJoined(g.Members[i]) {
		return g.Members[i]
	}
	return none
}

func hasJoined[P Part[P], M AnyMember[P]](m M) bool {
	_, ok := m.Identity()
	return ok
}

// IsEmpty implements kind.Group.
func (g *Group[P, M]) IsEmpty() bool { return g.Present == 0 }

// HadMembers implements kind.Group.
func (g *Group[P, M]) HadMembers() bool { return false }

// IsGone says that no record is left that groups of all these kinds have.
func (g *Group[P, M]) IsGone() bool { return !g.HasEpoch && !g.HasTarget && len(g.Members) == 0 }

// Version implements kind.Group: all that is seen of such a group is written down.
func (g *Group[P, M]) Version() kind.Version { return kind.Version{Changes: g.Changes} }

// SilentSince implements kind.Group.
func (g *Group[P, M]) SilentSince(id string) int64 {
	if i, ok := g.find(id); ok && hasJoined(g.Members[i]) {
		return g.Members[i].Common().Silent
	}
	return 0
}

// The states of a group.
const (
	StateEmpty       = "Empty"
	StateAssigning   = "Assigning"
	StateReconciling = "Reconciling"
	StateStable      = "Stable"
	stateDead        = "Dead"
)

// StateName returns Kafka's name of the group's state. A kind that has other states says so
// itself.
func (g *Group[P, M]) StateName() string {
	switch {
	case g.Present == 0:
		return StateEmpty
	case g.IsBehind():
		return StateAssigning
	}
	for _, m := range g.Members {
		if hasJoined(m) && !m.Common().HasSettled(g.TargetEpoch) {
			return StateReconciling
		}
	}
	return StateStable
}

// change changes a member, makes it if need be, and forgets it when nothing is left
// of it.
func (g *Group[P, M]) change(id string, positive bool, change func(M)) {
	i, known := g.find(id)
	if !known && !positive {
		return
	}
	if !known {
		g.Members = slices.Insert(g.Members, i, g.own.NewMember(id))
	}
	m := g.Members[i]
	change(m)
	if !hasJoined(m) && !m.Common().IsStored() {
		g.Members = slices.Delete(g.Members, i, i+1)
	}
}

// ApplyMember notes what a member says of itself, or that it is gone.
func (g *Group[P, M]) ApplyMember(id string, is bool, set func(M)) {
	g.change(id, is, func(m M) {
		if hasJoined(m) {
			g.count(m, -1)
		}
		if set(m); is {
			g.count(m, 1)
		}
	})
}

// count counts a member in or out.
func (g *Group[P, M]) count(m M, n int) {
	g.Present += n
	if who, _ := m.Identity(); who.Instance != nil {
		switch {
		case n > 0:
			g.Instances[*who.Instance] = m
		case g.Instances[*who.Instance] == m:
			delete(g.Instances, *who.Instance)
		}
	}
	g.own.Count(m, n)
}

// ApplyTarget notes what a member is to have.
func (g *Group[P, M]) ApplyTarget(id string, is bool, target []P) {
	g.change(id, is, func(m M) { m.Common().HasTarget, m.Common().Target = is, target })
}

// ApplyCurrent notes where a member has got to, nil for nowhere.
func (g *Group[P, M]) ApplyCurrent(id string, now *Current[P]) {
	g.change(id, now != nil, func(m M) {
		if m.Common().Current != nil {
			g.own.Hold(m, false)
		}
		if m.Common().Current = now; now != nil {
			g.own.Hold(m, true)
		}
	})
}
