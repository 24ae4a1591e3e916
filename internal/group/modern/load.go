package modern

import (
	"slices"

	"muster/internal/group/kind"
)

// A store may lose the end of its log, and a client may be further on then than what is known
// of its member (see Epochs). So after a load
//
//   - a member that was told a later epoch than is stored is fenced, as ever; one that says
//     that it has what its member has not is fenced as well; and all others are told with the
//     first answer what they have, whether or not that is news to them;
//   - no partition that seems to be free is given to a member until all members were heard of,
//     or given up: one of them may have it, and learns only then that it must not.

// Loaded makes a group live after a load: every member has a whole session
// timeout to be heard of, or what is left of it (see kind.Base.SessionLeft), and one that
// has to let go of something a whole rebalance timeout for that. The topics are looked at
// with the first heartbeat.
func (g *Group[P, M]) Loaded(x *kind.Step) {
	for _, m := range slices.Clone(g.Members) {
		if !hasJoined(m) { // What is left of a member that is gone.
			g.removeMember(x, m)
		}
	}
	g.own.Forget(x)
	g.afterLoad()
	if g.Account.Counted = g.Present; !g.Gone {
		g.own.SettleOwners(x)
	}
	x.ForgetSilences(&g.Base, func(id string) bool { i, ok := g.find(id); return ok && hasJoined(g.Members[i]) })
	for _, m := range g.Members {
		mem, session := m.Common(), g.own.Session(x, m)
		mem.Silent = x.SilentSince(&g.Base, mem.ID)
		mem.Wait(x, &g.Base, g.SessionLeft(mem.ID, session), session)
		if timeout, ok := m.RevokeTimeout(); ok && mem.Now().State == Unrevoked {
			mem.StartRevoking(x, g.ID, timeout)
		}
		mem.Since = x.Now
	}
	g.noteLoaded(x)
}

// afterLoad notes that a group was loaded.
func (g *Group[P, M]) afterLoad() {
	g.FirstAfterLoad = true
	for _, m := range g.Members {
		mem := m.Common()
		if mem.Untold = true; mem.Now().Epoch != EpochLeaveStatic { // Who is away has nothing.
			mem.Unheard = true
			g.unheard++
		}
	}
}

// clearUnheard notes that a member was heard of since the load, or is one no more.
func (g *Group[P, M]) clearUnheard(mem *Member[P]) {
	if mem.Unheard {
		mem.Unheard = false
		g.unheard--
	}
}

// AllHeard says whether what seems to be free is: every member was heard of since the load.
func (g *Group[P, M]) AllHeard() bool { return g.unheard == 0 }

// mayHaveUnsubscribed says whether a member was loaded and has not been told since what it
// has. Of a step that changed what it subscribes to, only the beginning may have been
// stored: what it wants now, and not what it is to let go of for that. To go over to a
// pattern that is not resolved yet is no reason for another epoch, in which that would show.
func mayHaveUnsubscribed[P Part[P]](x *kind.Step, mem *Member[P]) bool {
	return mem.Untold && x.Image != nil
}
