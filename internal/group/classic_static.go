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
func (x *step) replaceStatic(g *classicGroup, mem *member, newID string, r *machine.Request, m *kmsg.JoinGroupRequest) {
	if g.state == Stable && !x.fitsReplaced(g, mem, newID, r, m) {
		x.joinError(r, m, "", kerr.UnknownServerError)
		return
	}
	x.alive(g, mem)
	oldLeader, stale := g.leader, mem.who()
	parked := x.fenceOld(g, mem)
	x.cancel(sessionKey(g, mem.id))
	if g.leader == mem.id {
		g.leader = newID
	}
	old, change := mem.id, g.change(mem, m.Protocols)
	g.members.rename(mem, newID)
	mem.isNew = false // Its client knows its own name, and may come again at any time.
	x.park(g, mem, r, m)
	x.rearm(g, mem, mem.session)
	if mem.fenced != nil {
		mem.fenced.told = 0
	}
	if parked != "" {
		x.fenced(g, journal.Trigger{Who: stale, Request: parked, Parked: true}, mem)
	}

	why := trigger(journal.TriggerReplaced, mem, m.Reason)
	why.Was, why.Change = old, change
	switch g.state {
	case Stable:
		if g.vote() != g.protocol {
			x.rebalanceOrComplete(g, why)
			return
		}
		x.replaceQuietly(g, mem, oldLeader, r, m)
		x.note(g, journal.KindReplaced, why)
	case CompletingRebalance:
		// The leader may have been told the old id already, so that its
		// assignment would miss the new one.
		x.prepareRebalance(g, why)
	default:
		g.rebalance.add(why)
		x.maybeComplete(g)
	}
}

// fitsReplaced says whether the group could still be stored with what the new
// incarnation says of itself.
func (x *step) fitsReplaced(g *classicGroup, mem *member, newID string, r *machine.Request, m *kmsg.JoinGroupRequest) bool {
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
func (x *step) fenceOld(g *classicGroup, mem *member) (parked string) {
	if mem.join != 0 {
		parked = kmsg.JoinGroup.Name()
		x.replyJoinError(mem.join, mem.joinVersion, mem.id, kerr.FencedInstanceID)
		mem.join = 0
		g.joined--
	}
	if mem.sync != 0 {
		parked = kmsg.SyncGroup.Name()
		x.replySyncError(mem.sync, mem.syncVersion, kerr.FencedInstanceID)
		mem.sync = 0
	}
	return parked
}

// replaceQuietly answers a restarted static member without a rebalance. The new
// id is stored before the answer goes out.
func (x *step) replaceQuietly(g *classicGroup, mem *member, oldLeader string, r *machine.Request, m *kmsg.JoinGroupRequest) {
	mem.join = 0
	g.joined--
	x.store(g, g.record())
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
