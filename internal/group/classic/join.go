package classic

import (
	"encoding/hex"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/kind"
	"muster/internal/journal"
	"muster/internal/machine"
)

// The versions of JoinGroup at which the rules change.
const (
	JoinKnownID        = 4 // a new member must come again with the id it is given (KIP-394)
	JoinSkipAssignment = 9 // a restarted static leader is told not to assign (KIP-814)
)

// Host is a group of another kind with members that use the classic protocol.
type Host interface {
	// JoinClassic handles JoinGroup. False says that the group was empty and is a classic
	// one since, or is gone.
	JoinClassic(x *kind.Step, r *machine.Request, m *kmsg.JoinGroupRequest) bool
	SyncClassic(x *kind.Step, r *machine.Request, m *kmsg.SyncGroupRequest)
	HeartbeatClassic(x *kind.Step, m *kmsg.HeartbeatRequest) *kerr.Error
	// LeaveClassic handles what LeaveGroup says of one member, of any protocol.
	LeaveClassic(x *kind.Step, r *machine.Request, m *kmsg.LeaveGroupRequestMember) *kerr.Error
}

// join handles JoinGroup. The order of the checks is Kafka's.
func join(x *kind.Step, r *machine.Request, m *kmsg.JoinGroupRequest) {
	session := time.Duration(m.SessionTimeoutMillis) * time.Millisecond
	switch {
	case m.Group == "":
		JoinError(x, r, m, m.MemberID, kerr.InvalidGroupID)
		return
	case session < x.Cfg.MinSession || session > x.Cfg.MaxSession:
		JoinError(x, r, m, m.MemberID, kerr.InvalidSessionTimeout)
		return
	}
	if err := joinRoom(x, r, m); err != nil {
		JoinError(x, r, m, m.MemberID, err)
		return
	}
	x.Weigh(m.Group)
	if h, ok := x.Groups[m.Group].(Host); ok && h.JoinClassic(x, r, m) {
		return
	}
	g, ok := x.Groups[m.Group].(*Group)
	switch {
	case !ok && x.Groups[m.Group] != nil: // Of a kind that knows no such members.
		JoinError(x, r, m, m.MemberID, kerr.InconsistentGroupProtocol)
		return
	case m.MemberID != "" && g == nil:
		JoinError(x, r, m, m.MemberID, kerr.UnknownMemberID)
		return
	case m.MemberID == "" && (g == nil || g.Hard == nil):
		// The group is there from now on, also if this join fails, and if it was
		// a simple one that loses its offsets.
		r0 := EmptyGroup(m.Group)
		if !x.Fits(r0) {
			JoinError(x, r, m, m.MemberID, kerr.UnknownServerError)
			return
		}
		x.Write(r0)
		g = x.Groups[m.Group].(*Group)
		g.Since = x.Now.UnixMilli()
	}
	m.Protocols = Distinct(m.Protocols)
	switch {
	case !g.hasRoom(x, m.MemberID):
		JoinError(x, r, m, "", kerr.GroupMaxSizeReached)
		g.removeForSize(x, m.MemberID)
	case !g.supports(m.ProtocolType, m.Protocols):
		JoinError(x, r, m, m.MemberID, kerr.InconsistentGroupProtocol)
	case m.MemberID == "":
		g.joinNew(x, r, m)
	default:
		g.joinKnown(x, r, m)
	}
}

// hasRoom applies group.max.size. While members are joining, those that have
// count, so that when the limit was lowered the last to come back are left out.
func (g *Group) hasRoom(x *kind.Step, memberID string) bool {
	known := g.Members.Get(memberID)
	switch g.State {
	case PreparingRebalance:
		return known != nil && known.Join != 0 || int(g.Joined) < x.Cfg.MaxSize
	case CompletingRebalance, Stable:
		return known != nil || g.Members.Len() < x.Cfg.MaxSize
	}
	return true
}

// removeForSize takes a member that there is no room for out of the group, which need not
// wait for it any longer.
func (g *Group) removeForSize(x *kind.Step, memberID string) {
	g.ForgetPending(x, memberID)
	if mem := g.Members.Get(memberID); mem != nil {
		g.Rebalance.Add(Trigger(journal.TriggerMaxSize, mem, nil))
		g.drop(x, mem)
	}
	g.maybeComplete(x)
}

// joinNew handles a join without member id.
func (g *Group) joinNew(x *kind.Step, r *machine.Request, m *kmsg.JoinGroupRequest) {
	if m.InstanceID != nil {
		id := *m.InstanceID + "-" + UUID(x.Random)
		if old := g.Members.static(*m.InstanceID); old != nil {
			g.replaceStatic(x, old, id, r, m)
			return
		}
		g.addMember(x, id, r, m)
		return
	}
	id := r.ClientID + "-" + UUID(x.Random)
	if m.Version < JoinKnownID {
		g.addMember(x, id, r, m)
		return
	}
	if g.Pending == nil {
		g.Pending = map[string]*Pending{}
	}
	seq := x.Arm(SessionKey(g, id), x.Now.Add(time.Duration(m.SessionTimeoutMillis)*time.Millisecond))
	g.Pending[id] = &Pending{Seq: seq, clientID: r.ClientID, host: r.Host}
	g.bytes += pendingBytes(id)
	JoinError(x, r, m, id, kerr.MemberIDRequired)
}

// joinKnown handles a join with a member id.
func (g *Group) joinKnown(x *kind.Step, r *machine.Request, m *kmsg.JoinGroupRequest) {
	if g.Pending[m.MemberID] != nil && m.InstanceID == nil {
		g.addMember(x, m.MemberID, r, m)
		return
	}
	mem, err := g.lookup(x, r, m.MemberID, m.InstanceID)
	if err != nil {
		JoinError(x, r, m, m.MemberID, err)
		return
	}
	g.noteHeard(x, mem)
	change := g.changeOf(mem, m.Protocols)
	switch g.State {
	case PreparingRebalance:
		g.park(x, mem, r, m)
		if change != nil {
			g.Rebalance.Add(rejoined(mem, m, change))
		}
		g.maybeComplete(x)
	case CompletingRebalance, Stable:
		// A leader that joins a Stable group again wants to assign anew: for it
		// that is the only way to react to new topics and partitions.
		leads := g.State == Stable && g.Leader == mem.ID
		if change == nil && !leads {
			g.replyJoin(x, mem, r.ID, m.Version)
			return
		}
		g.park(x, mem, r, m)
		g.PrepareRebalance(x, rejoined(mem, m, change))
	default:
		JoinError(x, r, m, "", kerr.UnknownMemberID)
	}
}

// rejoined is the trigger of a member that joins again, with a change or because
// it leads.
func rejoined(mem *Member, m *kmsg.JoinGroupRequest, change *journal.Change) journal.Trigger {
	kind := journal.TriggerChanged
	if change == nil {
		kind = journal.TriggerLeader
	}
	why := Trigger(kind, mem, m.Reason)
	why.Change = change
	return why
}

// find returns a member, or why the request cannot be its.
func (g *Group) find(memberID string, instance *string) (*Member, *kerr.Error) {
	if instance != nil {
		holder := g.Members.static(*instance)
		if holder == nil {
			return nil, kerr.UnknownMemberID
		}
		if holder.ID != memberID {
			return nil, kerr.FencedInstanceID
		}
		return holder, nil
	}
	if mem := g.Members.Get(memberID); mem != nil {
		return mem, nil
	}
	return nil, kerr.UnknownMemberID
}

// addMember adds a member, parked in JoinGroup.
func (g *Group) addMember(x *kind.Step, id string, r *machine.Request, m *kmsg.JoinGroupRequest) {
	g.removePending(id) // Its timer is replaced by the member's.
	mem := &Member{
		ID: id, Instance: m.InstanceID, ClientID: r.ClientID, Host: x.Hosts.Of(r.Host),
		Join: r.ID, JoinVersion: m.Version, IsNew: true, JoinedAt: x.Now.UnixMilli(),
	}
	mem.update(m)
	if g.State == PreparingRebalance && g.Previous == Empty {
		g.newMember = true
	}
	g.Add(mem, m.ProtocolType)
	g.Joined++
	g.touch(x, mem, newMemberTimeout)
	g.rebalanceOrComplete(x, Trigger(journal.TriggerJoined, mem, m.Reason))
}

// update takes over what a join says of the member.
func (m *Member) update(req *kmsg.JoinGroupRequest) {
	m.Protocols = cloneProtocols(req.Protocols)
	m.Session = time.Duration(req.SessionTimeoutMillis) * time.Millisecond
	m.Rebalance = time.Duration(req.RebalanceTimeoutMillis) * time.Millisecond
	if req.Version == 0 {
		m.Rebalance = m.Session
	}
	m.loaded = false
}

// park updates a member and parks its join. A join that was parked already is
// from a connection that its client has given up.
func (g *Group) park(x *kind.Step, mem *Member, r *machine.Request, m *kmsg.JoinGroupRequest) {
	g.support(mem.Protocols, -1)
	mem.update(m)
	g.support(mem.Protocols, 1)
	mem.ClientID, mem.Host = r.ClientID, x.Hosts.Of(r.Host)
	if mem.Join != 0 {
		ReplyJoinError(x, mem.Join, mem.JoinVersion, mem.ID, kerr.RebalanceInProgress)
	} else {
		g.Joined++
	}
	mem.Join, mem.JoinVersion, mem.JoinedAt = r.ID, m.Version, x.Now.UnixMilli()
}

// ForgetPending removes a pending member, which was refused.
func (g *Group) ForgetPending(x *kind.Step, id string) {
	if g.Pending[id] != nil {
		g.removePending(id)
		x.Cancel(SessionKey(g, id))
	}
}

func SessionKey(g *Group, memberID string) machine.TimerKey {
	return machine.TimerKey{Kind: kind.TimerSession, ID: g.ID, Member: memberID}
}

// UUID writes random bytes as a version 4 UUID.
func UUID(b [16]byte) string {
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	s := hex.EncodeToString(b[:])
	return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
}

func JoinError(x *kind.Step, r *machine.Request, m *kmsg.JoinGroupRequest, memberID string, err *kerr.Error) {
	ReplyJoinError(x, r.ID, m.Version, memberID, err)
}

func ReplyJoinError(x *kind.Step, id machine.RequestID, version int16, memberID string, err *kerr.Error) {
	resp := kmsg.NewPtrJoinGroupResponse()
	resp.Version, resp.ErrorCode = version, err.Code
	resp.Generation, resp.MemberID = -1, memberID
	x.Reply(id, resp)
}

// JoinResponse is the answer that tells a member of the current generation.
func (g *Group) JoinResponse(mem *Member, version int16) *kmsg.JoinGroupResponse {
	resp := kmsg.NewPtrJoinGroupResponse()
	resp.Version = version
	resp.Generation, resp.MemberID, resp.LeaderID = g.Generation, mem.ID, g.Leader
	protocolType, protocol := g.ProtocolType, g.Protocol
	resp.ProtocolType, resp.Protocol = &protocolType, &protocol
	if g.Leader == mem.ID {
		resp.Members = g.joinMembers()
	}
	return resp
}

// joinMembers lists the members for the leader.
func (g *Group) joinMembers() []kmsg.JoinGroupResponseMember {
	out := make([]kmsg.JoinGroupResponseMember, 0, g.Members.Len())
	for m := g.Members.First; m != nil; m = m.Next {
		e := kmsg.NewJoinGroupResponseMember()
		e.MemberID, e.InstanceID, e.ProtocolMetadata = m.ID, m.Instance, m.Metadata(g.Protocol)
		out = append(out, e)
	}
	return out
}

func (g *Group) replyJoin(x *kind.Step, mem *Member, id machine.RequestID, version int16) {
	x.Reply(id, g.JoinResponse(mem, version))
}
