package consumer

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/kind"
	"muster/internal/group/modern"
	"muster/internal/journal"
)

// An epoch must not be given out twice with another meaning, as little as the number of
// a generation (see generation.go). It is stored before anybody is told of it; but a
// store may lose the end of its log, and a client may be further on then than what is
// known of its member. So after a load
//
//   - the first epoch of a group leaps, and so do the target that is made for it and the
//     members that come to it;
//   - a target that was due is not made for the epoch that the log has, for which there
//     may have been another: it has an epoch of its own;
//   - who was told a later epoch than its member has is fenced, as ever; who says that it
//     has what its member has not is fenced as well; and everybody else is told with the
//     first answer what they have, whether or not that is news to them;
//   - nobody is given a partition that seems to be free until all members were heard of,
//     or given up: one of them may have it, and learns only then that it must not.

// afterLoad notes that a group was loaded.
func (g *Group) afterLoad() {
	g.leaps = true
	for _, mem := range g.Members {
		if mem.untold = true; mem.Now().Epoch != modern.EpochLeaveStatic { // Who is away has nothing.
			mem.unheard = true
			g.unheard++
		}
	}
}

// heard notes that a member was heard of since the load, or is one no more.
func (g *Group) heard(mem *Member) {
	if mem.unheard {
		mem.unheard = false
		g.unheard--
	}
}

// isFree says whether a member may be given a partition now. What it was letting go of
// itself it may have back.
func (g *Group) isFree(p modern.Partition, mem *Member) bool {
	owner := g.Owners[p]
	return owner == mem || owner == nil && g.unheard == 0
}

// nextEpoch is the epoch that a group has next.
func (g *Group) nextEpoch(x *kind.Step) int32 {
	if !g.leaps {
		return g.Epoch + 1
	}
	g.leaps = false
	return kind.Leap(g.Epoch, x.Epoch, 0)
}

// renews says whether a group must have another epoch since it was loaded before there
// was a target for the one that it has.
func (g *Group) renews(x *kind.Step) bool {
	if !g.leaps || g.TargetEpoch >= g.Epoch {
		return false
	}
	if len(x.Why) == 0 {
		blame(x, journal.Trigger{Kind: journal.TriggerResumed})
	}
	return true
}

// isAhead says whether the client of a member that was loaded has something of which
// nothing is stored any more.
func (mem *Member) isAhead(m *kmsg.ConsumerGroupHeartbeatRequest) bool {
	if !mem.unheard || m.Topics == nil {
		return false
	}
	now := mem.Now()
	for _, p := range ownedParts(m.Topics) {
		if !modern.Holds(now.Assigned, p) && !modern.Holds(now.Pending, p) {
			return true
		}
	}
	return false
}

func fencedAhead() *consumerError {
	return refused(kerr.FencedMemberEpoch, "The consumer group member has partitions that the group coordinator does not know it has. The member must abandon all its partitions and rejoin.")
}

// mayHaveUnsubscribed says whether a member was loaded and has not been told since what it
// has. Of a step that changed what it subscribes to, only the beginning may have been
// stored: what it wants now, and not what it is to let go of for that. To go over to a
// pattern that is not resolved yet is no reason for another epoch, in which that would show.
func mayHaveUnsubscribed(x *kind.Step, mem *Member) bool { return mem.untold && x.Image != nil }
