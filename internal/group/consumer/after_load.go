package consumer

import (
	"muster/internal/group/kind"
	"muster/internal/group/modern"
	"muster/internal/journal"
)

// A store may lose the end of its log, and a client may be further on then than what is known
// of its member (see modern.Epochs). So after a load
//
//   - a member that was told a later epoch than is stored is fenced, as ever; one that says
//     that it has what its member has not is fenced as well; and all others are told with the
//     first answer what they have, whether or not that is news to them;
//   - no partition that seems to be free is given to a member until all members were heard of,
//     or given up: one of them may have it, and learns only then that it must not.

// afterLoad notes that a group was loaded.
func (g *Group) afterLoad() {
	g.FirstAfterLoad = true
	for _, mem := range g.Members {
		if mem.Untold = true; mem.Now().Epoch != modern.EpochLeaveStatic { // Who is away has nothing.
			mem.Unheard = true
			g.unheard++
		}
	}
}

// clearUnheard notes that a member was heard of since the load, or is one no more.
func (g *Group) clearUnheard(mem *Member) {
	if mem.Unheard {
		mem.Unheard = false
		g.unheard--
	}
}

// isFree says whether a member may be given a partition now. What it was letting go of
// itself it may have back.
func (g *Group) isFree(p modern.Partition, mem *Member) bool {
	owner := g.Owners[p]
	return owner == mem || owner == nil && g.unheard == 0
}

// renewAfterLoad says whether a group must have another epoch since it was loaded before there was
// a target for the one that it has.
func (g *Group) renewAfterLoad(x *kind.Step) bool {
	if !g.MustRenew() {
		return false
	}
	if len(x.Why) == 0 {
		addTriggers(x, journal.Trigger{Kind: journal.TriggerResumed})
	}
	return true
}

// mayHaveUnsubscribed says whether a member was loaded and has not been told since what it
// has. Of a step that changed what it subscribes to, only the beginning may have been
// stored: what it wants now, and not what it is to let go of for that. To go over to a
// pattern that is not resolved yet is no reason for another epoch, in which that would show.
func mayHaveUnsubscribed(x *kind.Step, mem *Member) bool { return mem.Untold && x.Image != nil }
