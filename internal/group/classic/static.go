package classic

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/kind"
	"muster/internal/group/schema"
	"muster/internal/journal"
	"muster/internal/machine"
)

// replaceStatic lets a new incarnation of a static member take the place of the
// old one (KIP-345): it gets a new id, keeps assignment and leadership, and in a
// Stable group no one else notices.
func (g *Group) replaceStatic(x *kind.Step, mem *Member, newID string, r *machine.Request, m *kmsg.JoinGroupRequest) {
	if g.State == Stable && !g.fitsReplaced(x, mem, newID, r, m) {
		JoinError(x, r, m, "", kerr.UnknownServerError)
		return
	}
	g.noteHeard(x, mem)
	oldLeader, stale := g.Leader, mem.Who()
	parked := g.fenceOld(x, mem)
	x.Cancel(SessionKey(g, mem.ID))
	if g.Leader == mem.ID {
		g.Leader = newID
	}
	old, change := mem.ID, g.changeOf(mem, m.Protocols)
	g.Members.rename(mem, newID)
	mem.IsNew = false // Its client knows its own name, and may come again at any time.
	g.park(x, mem, r, m)
	g.rearm(x, mem, mem.Session)
	if mem.fenced != nil {
		mem.fenced.Told = 0
	}
	if parked != "" {
		g.fenced(x, journal.Trigger{Who: stale, Request: parked, Parked: true}, mem)
	}

	why := Trigger(journal.TriggerReplaced, mem, m.Reason)
	why.Was, why.Change = old, change
	switch g.State {
	case Stable:
		if g.Vote() != g.Protocol || g.Live != nil { // A reset waits for someone to join again: that may have been it.
			g.rebalanceOrComplete(x, why)
			return
		}
		g.replaceQuietly(x, mem, oldLeader, r, m)
		x.Note(g, journal.KindReplaced, why)
	case CompletingRebalance:
		// The leader may have been told the old id already, so that its
		// assignment would miss the new one.
		g.PrepareRebalance(x, why)
	default:
		g.Rebalance.Add(why)
		g.maybeComplete(x)
	}
}

// fitsReplaced says whether the group could still be stored with what the new
// incarnation says of itself.
func (g *Group) fitsReplaced(x *kind.Step, mem *Member, newID string, r *machine.Request, m *kmsg.JoinGroupRequest) bool {
	if x.MaxBatch <= 0 {
		return true
	}
	size := machine.RecordOverhead + (&schema.GroupRecord{Group: g.ID, Value: g.Hard}).Size() + len(newID) + len(r.ClientID) + len(r.Host)
	for i := range m.Protocols {
		if m.Protocols[i].Name == g.Protocol {
			size += len(m.Protocols[i].Metadata) - len(mem.Metadata(g.Protocol))
		}
	}
	return size <= x.MaxBatch
}

// fenceOld answers what the old incarnation has parked, and returns which request
// that was.
func (g *Group) fenceOld(x *kind.Step, mem *Member) (parked string) {
	if mem.Join != 0 {
		parked = kmsg.JoinGroup.Name()
		ReplyJoinError(x, mem.Join, mem.JoinVersion, mem.ID, kerr.FencedInstanceID)
		mem.Join = 0
		g.Joined--
	}
	if mem.Sync != 0 {
		parked = kmsg.SyncGroup.Name()
		ReplySyncError(x, mem.Sync, mem.SyncVersion, kerr.FencedInstanceID)
		mem.Sync = 0
	}
	return parked
}

// replaceQuietly answers a restarted static member without a rebalance. The new
// id is stored before the answer goes out.
func (g *Group) replaceQuietly(x *kind.Step, mem *Member, oldLeader string, r *machine.Request, m *kmsg.JoinGroupRequest) {
	mem.Join = 0
	g.Joined--
	g.store(x, g.Record())
	resp := g.JoinResponse(mem, m.Version)
	if m.Version >= JoinSkipAssignment {
		resp.SkipAssignment = g.Leader == mem.ID
	} else {
		// An older client assigns whenever it is the leader, so a restarted
		// leader is told that someone else is: itself, under its old id.
		resp.LeaderID, resp.Members = oldLeader, nil
	}
	x.Reply(r.ID, resp)
}
