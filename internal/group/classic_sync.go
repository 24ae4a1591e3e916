package group

import (
	"bytes"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/schema"
	"muster/internal/journal"
	"muster/internal/machine"
)

// sync handles SyncGroup: members wait for the leader's assignment.
func sync(x *step, r *machine.Request, m *kmsg.SyncGroupRequest) {
	if h, ok := x.groups[m.Group].(classicHost); ok && m.Group != "" {
		h.syncClassic(x, r, m)
		return
	}
	g, mem, err := checkSync(x, r, m)
	if err != nil {
		replySyncError(x, r.ID, m.Version, err)
		return
	}
	switch g.state {
	case PreparingRebalance:
		replySyncError(x, r.ID, m.Version, kerr.RebalanceInProgress)
	case CompletingRebalance:
		if mem.sync != 0 {
			// From a connection that the client has given up.
			replySyncError(x, mem.sync, mem.syncVersion, kerr.RebalanceInProgress)
		}
		mem.sync, mem.syncVersion = r.ID, m.Version
		g.synced(x, mem)
		if g.leader == mem.id {
			g.assign(x, m.GroupAssignment)
		}
	case Stable:
		g.synced(x, mem)
		g.replySync(x, mem, r.ID, m.Version)
	default:
		replySyncError(x, r.ID, m.Version, kerr.UnknownMemberID)
	}
}

// checkSync finds the group and member that a sync is of.
func checkSync(x *step, r *machine.Request, m *kmsg.SyncGroupRequest) (*classicGroup, *member, *kerr.Error) {
	if m.Group == "" {
		return nil, nil, kerr.InvalidGroupID
	}
	g, ok := x.groups[m.Group].(*classicGroup)
	if !ok {
		return nil, nil, kerr.UnknownMemberID
	}
	mem, err := g.lookup(x, r, m.MemberID, m.InstanceID)
	switch {
	case err != nil:
		return nil, nil, err
	case m.Generation != g.generation:
		return nil, nil, kerr.IllegalGeneration
	case differs(m.ProtocolType, g.protocolType), differs(m.Protocol, g.protocol):
		return nil, nil, kerr.InconsistentGroupProtocol
	}
	return g, mem, nil
}

// differs says that a client names another protocol than its group has, if the
// group has one already.
func differs(said *string, is string) bool { return said != nil && is != "" && *said != is }

// synced notes that a member has asked for its assignment.
func (g *classicGroup) synced(x *step, mem *member) {
	g.alive(x, mem)
	g.sync(mem)
	if g.unsynced == 0 {
		g.cancelSync(x)
	}
}

func (g *classicGroup) cancelSync(x *step) {
	if g.syncSeq != 0 {
		g.syncSeq = 0
		x.cancel(syncKey(g))
	}
}

// assign takes the leader's assignment. Members that it left out get nothing,
// ids that it made up are ignored. The generation is stored before anybody is
// told, so that a successor knows it.
func (g *classicGroup) assign(x *step, assignments []kmsg.SyncGroupRequestGroupAssignment) {
	for m := g.members.first; m != nil; m = m.next {
		m.assigned = nil
	}
	for i := range assignments {
		if m := g.members.get(assignments[i].MemberID); m != nil {
			m.assigned = bytes.Clone(assignments[i].MemberAssignment)
		}
	}
	r := g.record()
	r.Value.CurrentStateTimestamp = x.now.UnixMilli()
	if !x.fits(r) || r.Size() > maxGroupBytes {
		g.tooLarge(x, r)
		return
	}
	g.to(Stable, x.now)
	g.settle(x)
	g.store(x, r)
	for m := g.members.first; m != nil; m = m.next {
		if m.sync != 0 {
			g.replySync(x, m, m.sync, m.syncVersion)
			m.sync = 0
			g.touch(x, m, m.session)
		}
	}
}

// tooLarge refuses an assignment that cannot be stored, as Kafka does: the
// members that wait are told, and the group tries again. No other group is affected.
func (g *classicGroup) tooLarge(x *step, r *schema.GroupRecord) {
	for m := g.members.first; m != nil; m = m.next {
		m.assigned = nil
	}
	g.failSyncs(x, kerr.UnknownServerError)
	g.prepareRebalance(x, journal.Trigger{Kind: journal.TriggerTooLarge, Who: g.members.get(g.leader).who(), Bytes: r.Size(), MaxBytes: x.maxBatch})
}

// syncFired removes members that have not asked for their assignment, also when
// the group is Stable for the others.
func (g *classicGroup) syncFired(x *step) {
	g.syncSeq = 0
	if g.state != CompletingRebalance && g.state != Stable || g.unsynced == 0 {
		return
	}
	var why []journal.Trigger
	for m := g.members.first; m != nil; m = m.next {
		if m.unsynced {
			why = append(why, trigger(journal.TriggerNoSync, m, nil))
			g.drop(x, m)
		}
	}
	g.prepareRebalance(x, why...)
}

// failSyncs answers all parked syncs with an error.
func (g *classicGroup) failSyncs(x *step, err *kerr.Error) {
	for m := g.members.first; m != nil; m = m.next {
		if m.sync != 0 {
			replySyncError(x, m.sync, m.syncVersion, err)
			m.sync = 0
			g.touch(x, m, m.session)
		}
	}
}

func replySyncError(x *step, id machine.RequestID, version int16, err *kerr.Error) {
	resp := kmsg.NewPtrSyncGroupResponse()
	resp.Version, resp.ErrorCode = version, err.Code
	resp.MemberAssignment = []byte{}
	x.reply(id, resp)
}

func (g *classicGroup) replySync(x *step, mem *member, id machine.RequestID, version int16) {
	resp := kmsg.NewPtrSyncGroupResponse()
	resp.Version = version
	protocolType, protocol := g.protocolType, g.protocol
	resp.ProtocolType, resp.Protocol = &protocolType, &protocol
	resp.MemberAssignment = mem.assigned
	x.reply(id, resp)
}
