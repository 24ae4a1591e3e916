package group

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/schema"
	"muster/internal/journal"
	"muster/internal/machine"
)

// replaceStatic lets a new incarnation of a static member take the place of the
// old one (KIP-345): it gets a new id, keeps assignment and leadership, and in a
// Stable group nobody else notices.
func (g *classicGroup) replaceStatic(x *step, mem *member, newID string, r *machine.Request, m *kmsg.JoinGroupRequest) {
	if g.state == Stable && !g.fitsReplaced(x, mem, newID, r, m) {
		joinError(x, r, m, "", kerr.UnknownServerError)
		return
	}
	g.alive(x, mem)
	oldLeader, stale := g.leader, mem.who()
	parked := g.fenceOld(x, mem)
	x.cancel(sessionKey(g, mem.id))
	if g.leader == mem.id {
		g.leader = newID
	}
	old, change := mem.id, g.change(mem, m.Protocols)
	g.members.rename(mem, newID)
	mem.isNew = false // Its client knows its own name, and may come again at any time.
	g.park(x, mem, r, m)
	g.rearm(x, mem, mem.session)
	if mem.fenced != nil {
		mem.fenced.told = 0
	}
	if parked != "" {
		g.fenced(x, journal.Trigger{Who: stale, Request: parked, Parked: true}, mem)
	}

	why := trigger(journal.TriggerReplaced, mem, m.Reason)
	why.Was, why.Change = old, change
	switch g.state {
	case Stable:
		if g.vote() != g.protocol {
			g.rebalanceOrComplete(x, why)
			return
		}
		g.replaceQuietly(x, mem, oldLeader, r, m)
		x.note(g, journal.KindReplaced, why)
	case CompletingRebalance:
		// The leader may have been told the old id already, so that its
		// assignment would miss the new one.
		g.prepareRebalance(x, why)
	default:
		g.rebalance.add(why)
		g.maybeComplete(x)
	}
}

// fitsReplaced says whether the group could still be stored with what the new
// incarnation says of itself.
func (g *classicGroup) fitsReplaced(x *step, mem *member, newID string, r *machine.Request, m *kmsg.JoinGroupRequest) bool {
	if x.maxBatch <= 0 {
		return true
	}
	size := machine.RecordOverhead + (&schema.GroupRecord{Group: g.id, Value: g.hard}).Size() + len(newID) + len(r.ClientID) + len(r.Host)
	for i := range m.Protocols {
		if m.Protocols[i].Name == g.protocol {
			size += len(m.Protocols[i].Metadata) - len(mem.metadata(g.protocol))
		}
	}
	return size <= x.maxBatch
}

// fenceOld answers what the old incarnation has parked, and returns which request
// that was.
func (g *classicGroup) fenceOld(x *step, mem *member) (parked string) {
	if mem.join != 0 {
		parked = kmsg.JoinGroup.Name()
		replyJoinError(x, mem.join, mem.joinVersion, mem.id, kerr.FencedInstanceID)
		mem.join = 0
		g.joined--
	}
	if mem.sync != 0 {
		parked = kmsg.SyncGroup.Name()
		replySyncError(x, mem.sync, mem.syncVersion, kerr.FencedInstanceID)
		mem.sync = 0
	}
	return parked
}

// replaceQuietly answers a restarted static member without a rebalance. The new
// id is stored before the answer goes out.
func (g *classicGroup) replaceQuietly(x *step, mem *member, oldLeader string, r *machine.Request, m *kmsg.JoinGroupRequest) {
	mem.join = 0
	g.joined--
	g.store(x, g.record())
	resp := g.joinResponse(mem, m.Version)
	if m.Version >= joinSkipAssignment {
		resp.SkipAssignment = g.leader == mem.id
	} else {
		// An older client assigns whenever it is the leader, so a restarted
		// leader is told that somebody else is: itself, under its old id.
		resp.LeaderID, resp.Members = oldLeader, nil
	}
	x.reply(r.ID, resp)
}
