package classic

import (
	"bytes"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/kind"
	"muster/internal/group/schema"
	"muster/internal/journal"
	"muster/internal/machine"
)

// sync handles SyncGroup: members wait for the leader's assignment.
func sync(x *kind.Step, r *machine.Request, m *kmsg.SyncGroupRequest) {
	if h, ok := x.Groups[m.Group].(Host); ok && m.Group != "" {
		h.SyncClassic(x, r, m)
		return
	}
	g, mem, err := checkSync(x, r, m)
	if err != nil {
		ReplySyncError(x, r.ID, m.Version, err)
		return
	}
	switch g.State {
	case PreparingRebalance:
		ReplySyncError(x, r.ID, m.Version, kerr.RebalanceInProgress)
	case CompletingRebalance:
		if mem.Sync != 0 {
			// From a connection that the client has given up.
			ReplySyncError(x, mem.Sync, mem.SyncVersion, kerr.RebalanceInProgress)
		}
		mem.Sync, mem.SyncVersion = r.ID, m.Version
		g.synced(x, mem)
		if g.Leader == mem.ID {
			g.assign(x, m.GroupAssignment)
		}
	case Stable:
		g.synced(x, mem)
		g.replySync(x, mem, r.ID, m.Version)
	default:
		ReplySyncError(x, r.ID, m.Version, kerr.UnknownMemberID)
	}
}

// checkSync finds the group and member that a sync is of.
func checkSync(x *kind.Step, r *machine.Request, m *kmsg.SyncGroupRequest) (*Group, *Member, *kerr.Error) {
	if m.Group == "" {
		return nil, nil, kerr.InvalidGroupID
	}
	g, ok := x.Groups[m.Group].(*Group)
	if !ok {
		return nil, nil, kerr.UnknownMemberID
	}
	mem, err := g.lookup(x, r, m.MemberID, m.InstanceID)
	switch {
	case err != nil:
		return nil, nil, err
	case m.Generation != g.Generation:
		return nil, nil, kerr.IllegalGeneration
	case Differs(m.ProtocolType, g.ProtocolType), Differs(m.Protocol, g.Protocol):
		return nil, nil, kerr.InconsistentGroupProtocol
	}
	return g, mem, nil
}

// Differs says that a client names another protocol than its group has, if the
// group has one already.
func Differs(said *string, is string) bool { return said != nil && is != "" && *said != is }

// synced notes that a member has asked for its assignment.
func (g *Group) synced(x *kind.Step, mem *Member) {
	g.noteHeard(x, mem)
	g.noteSynced(mem)
	if g.Unsynced == 0 {
		g.CancelSync(x)
	}
}

func (g *Group) CancelSync(x *kind.Step) {
	if g.SyncSeq != 0 {
		g.SyncSeq = 0
		x.Cancel(SyncKey(g))
	}
}

// assign takes the leader's assignment. Members that it left out get nothing,
// ids that it made up are ignored. The generation is stored before anybody is
// told, so that a successor knows it.
func (g *Group) assign(x *kind.Step, assignments []kmsg.SyncGroupRequestGroupAssignment) {
	for m := g.Members.First; m != nil; m = m.Next {
		m.Assigned = nil
	}
	for i := range assignments {
		if m := g.Members.Get(assignments[i].MemberID); m != nil {
			m.Assigned = bytes.Clone(assignments[i].MemberAssignment)
		}
	}
	g.withhold(x)
	r := g.Record()
	r.Value.CurrentStateTimestamp = x.Now.UnixMilli()
	if !x.Fits(r) || r.Size() > kind.MaxGroupBytes {
		g.tooLarge(x, r)
		return
	}
	g.changeState(Stable, x.Now)
	g.noteSettled(x)
	g.storeGeneration(x, r)
	for m := g.Members.First; m != nil; m = m.Next {
		if m.Sync != 0 {
			g.replySync(x, m, m.Sync, m.SyncVersion)
			m.Sync = 0
			g.touch(x, m, m.Session)
		}
	}
}

// tooLarge refuses an assignment that cannot be stored, as Kafka does: the
// members that wait are told, and the group tries again. No other group is affected.
func (g *Group) tooLarge(x *kind.Step, r *schema.GroupRecord) {
	for m := g.Members.First; m != nil; m = m.Next {
		m.Assigned = nil
	}
	g.failSyncs(x, kerr.UnknownServerError)
	g.PrepareRebalance(x, journal.Trigger{Kind: journal.TriggerTooLarge, Who: g.Members.Get(g.Leader).Who(), Bytes: r.Size(), MaxBytes: x.MaxBatch})
}

// syncFired removes members that have not asked for their assignment, also when
// the group is Stable for the others.
func (g *Group) syncFired(x *kind.Step) {
	g.SyncSeq = 0
	if g.State != CompletingRebalance && g.State != Stable || g.Unsynced == 0 {
		return
	}
	var why []journal.Trigger
	for m := g.Members.First; m != nil; m = m.Next {
		if m.Unsynced {
			why = append(why, Trigger(journal.TriggerNoSync, m, nil))
			g.drop(x, m)
		}
	}
	g.PrepareRebalance(x, why...)
}

// failSyncs answers all parked syncs with an error.
func (g *Group) failSyncs(x *kind.Step, err *kerr.Error) {
	for m := g.Members.First; m != nil; m = m.Next {
		if m.Sync != 0 {
			ReplySyncError(x, m.Sync, m.SyncVersion, err)
			m.Sync = 0
			g.touch(x, m, m.Session)
		}
	}
}

func ReplySyncError(x *kind.Step, id machine.RequestID, version int16, err *kerr.Error) {
	resp := kmsg.NewPtrSyncGroupResponse()
	resp.Version, resp.ErrorCode = version, err.Code
	resp.MemberAssignment = []byte{}
	x.Reply(id, resp)
}

func (g *Group) replySync(x *kind.Step, mem *Member, id machine.RequestID, version int16) {
	resp := kmsg.NewPtrSyncGroupResponse()
	resp.Version = version
	protocolType, protocol := g.ProtocolType, g.Protocol
	resp.ProtocolType, resp.Protocol = &protocolType, &protocol
	resp.MemberAssignment = mem.Assigned
	x.Reply(id, resp)
}
