package group

import (
	"encoding/hex"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/journal"
	"muster/internal/machine"
)

// The versions of JoinGroup at which the rules change.
const (
	joinKnownID        = 4 // a new member must come again with the id it is given (KIP-394)
	joinSkipAssignment = 9 // a restarted static leader is told not to assign (KIP-814)
)

// classicHost is a group of another kind with members that use the classic protocol.
type classicHost interface {
	// joinClassic handles JoinGroup. False says that the group was empty and is a classic
	// one since, or is gone.
	joinClassic(x *step, r *machine.Request, m *kmsg.JoinGroupRequest) bool
	syncClassic(x *step, r *machine.Request, m *kmsg.SyncGroupRequest)
	heartbeatClassic(x *step, m *kmsg.HeartbeatRequest) *kerr.Error
	// leaveClassic handles what LeaveGroup says of one member, of any protocol.
	leaveClassic(x *step, r *machine.Request, m *kmsg.LeaveGroupRequestMember) *kerr.Error
}

// classicRequest handles the requests of the classic protocol.
func classicRequest(x *step, r *machine.Request) bool {
	switch m := r.Msg.(type) {
	case *kmsg.JoinGroupRequest:
		join(x, r, m)
	case *kmsg.SyncGroupRequest:
		sync(x, r, m)
	case *kmsg.HeartbeatRequest:
		heartbeat(x, r, m)
	case *kmsg.LeaveGroupRequest:
		leave(x, r, m)
	case *kmsg.DescribeGroupsRequest:
		describe(x, r, m)
	default:
		return false
	}
	return true
}

// join handles JoinGroup. The order of the checks is Kafka's.
func join(x *step, r *machine.Request, m *kmsg.JoinGroupRequest) {
	session := time.Duration(m.SessionTimeoutMillis) * time.Millisecond
	switch {
	case m.Group == "":
		joinError(x, r, m, m.MemberID, kerr.InvalidGroupID)
		return
	case session < x.cfg.MinSession || session > x.cfg.MaxSession:
		joinError(x, r, m, m.MemberID, kerr.InvalidSessionTimeout)
		return
	}
	if err := joinRoom(x, r, m); err != nil {
		joinError(x, r, m, m.MemberID, err)
		return
	}
	x.weigh(m.Group)
	if h, ok := x.groups[m.Group].(classicHost); ok && h.joinClassic(x, r, m) {
		return
	}
	g, _ := x.groups[m.Group].(*classicGroup)
	switch {
	case m.MemberID != "" && g == nil:
		joinError(x, r, m, m.MemberID, kerr.UnknownMemberID)
		return
	case m.MemberID == "" && (g == nil || g.hard == nil):
		// The group is there from now on, also if this join fails, and if it was
		// a simple one that loses its offsets.
		r0 := emptyGroup(m.Group)
		if !x.fits(r0) {
			joinError(x, r, m, m.MemberID, kerr.UnknownServerError)
			return
		}
		x.write(r0)
		g = x.groups[m.Group].(*classicGroup)
		g.since = x.now.UnixMilli()
	}
	m.Protocols = distinct(m.Protocols)
	switch {
	case !g.hasRoom(x, m.MemberID):
		joinError(x, r, m, "", kerr.GroupMaxSizeReached)
		g.refuse(x, m.MemberID)
	case !g.supports(m.ProtocolType, m.Protocols):
		joinError(x, r, m, m.MemberID, kerr.InconsistentGroupProtocol)
	case m.MemberID == "":
		g.joinNew(x, r, m)
	default:
		g.joinKnown(x, r, m)
	}
}

// hasRoom applies group.max.size. While members are joining, those that have
// count, so that when the limit was lowered the last to come back are left out.
func (g *classicGroup) hasRoom(x *step, memberID string) bool {
	known := g.members.get(memberID)
	switch g.state {
	case PreparingRebalance:
		return known != nil && known.join != 0 || int(g.joined) < x.cfg.MaxSize
	case CompletingRebalance, Stable:
		return known != nil || g.members.len() < x.cfg.MaxSize
	}
	return true
}

// refuse takes a member that there is no room for out of the group, which need not
// wait for it any longer.
func (g *classicGroup) refuse(x *step, memberID string) {
	g.forgetPending(x, memberID)
	if mem := g.members.get(memberID); mem != nil {
		g.rebalance.add(trigger(journal.TriggerMaxSize, mem, nil))
		g.drop(x, mem)
	}
	g.maybeComplete(x)
}

// joinNew handles a join without member id.
func (g *classicGroup) joinNew(x *step, r *machine.Request, m *kmsg.JoinGroupRequest) {
	if m.InstanceID != nil {
		id := *m.InstanceID + "-" + uuid(x.random)
		if old := g.members.static(*m.InstanceID); old != nil {
			g.replaceStatic(x, old, id, r, m)
			return
		}
		g.addMember(x, id, r, m)
		return
	}
	id := r.ClientID + "-" + uuid(x.random)
	if m.Version < joinKnownID {
		g.addMember(x, id, r, m)
		return
	}
	if g.pending == nil {
		g.pending = map[string]*pending{}
	}
	seq := x.arm(sessionKey(g, id), x.now.Add(time.Duration(m.SessionTimeoutMillis)*time.Millisecond))
	g.pending[id] = &pending{seq: seq, clientID: r.ClientID, host: r.Host}
	g.bytes += pendingBytes(id)
	joinError(x, r, m, id, kerr.MemberIDRequired)
}

// joinKnown handles a join with a member id.
func (g *classicGroup) joinKnown(x *step, r *machine.Request, m *kmsg.JoinGroupRequest) {
	if g.pending[m.MemberID] != nil && m.InstanceID == nil {
		g.addMember(x, m.MemberID, r, m)
		return
	}
	mem, err := g.lookup(x, r, m.MemberID, m.InstanceID)
	if err != nil {
		joinError(x, r, m, m.MemberID, err)
		return
	}
	g.alive(x, mem)
	change := g.change(mem, m.Protocols)
	switch g.state {
	case PreparingRebalance:
		g.park(x, mem, r, m)
		if change != nil {
			g.rebalance.add(rejoined(mem, m, change))
		}
		g.maybeComplete(x)
	case CompletingRebalance, Stable:
		// A leader that joins a Stable group again wants to assign anew: for it
		// that is the only way to react to new topics and partitions.
		leads := g.state == Stable && g.leader == mem.id
		if change == nil && !leads {
			g.replyJoin(x, mem, r.ID, m.Version)
			return
		}
		g.park(x, mem, r, m)
		g.prepareRebalance(x, rejoined(mem, m, change))
	default:
		joinError(x, r, m, "", kerr.UnknownMemberID)
	}
}

// rejoined is the trigger of a member that joins again, with a change or because
// it leads.
func rejoined(mem *member, m *kmsg.JoinGroupRequest, change *journal.Change) journal.Trigger {
	kind := journal.TriggerChanged
	if change == nil {
		kind = journal.TriggerLeader
	}
	why := trigger(kind, mem, m.Reason)
	why.Change = change
	return why
}

// find returns a member, or why the request cannot be its.
func (g *classicGroup) find(memberID string, instance *string) (*member, *kerr.Error) {
	if instance != nil {
		holder := g.members.static(*instance)
		if holder == nil {
			return nil, kerr.UnknownMemberID
		}
		if holder.id != memberID {
			return nil, kerr.FencedInstanceID
		}
		return holder, nil
	}
	if mem := g.members.get(memberID); mem != nil {
		return mem, nil
	}
	return nil, kerr.UnknownMemberID
}

// addMember adds a member, parked in JoinGroup.
func (g *classicGroup) addMember(x *step, id string, r *machine.Request, m *kmsg.JoinGroupRequest) {
	g.forget(id) // Its timer is replaced by the member's.
	mem := &member{
		id: id, instance: m.InstanceID, clientID: r.ClientID, host: x.hosts.of(r.Host),
		join: r.ID, joinVersion: m.Version, isNew: true, asked: x.now.UnixMilli(),
	}
	mem.take(m)
	if g.state == PreparingRebalance && g.previous == Empty {
		g.newMember = true
	}
	g.add(mem, m.ProtocolType)
	g.joined++
	g.touch(x, mem, newMemberTimeout)
	g.rebalanceOrComplete(x, trigger(journal.TriggerJoined, mem, m.Reason))
}

// take takes over what a join says of the member.
func (m *member) take(req *kmsg.JoinGroupRequest) {
	m.protocols = cloneProtocols(req.Protocols)
	m.session = time.Duration(req.SessionTimeoutMillis) * time.Millisecond
	m.rebalance = time.Duration(req.RebalanceTimeoutMillis) * time.Millisecond
	if req.Version == 0 {
		m.rebalance = m.session
	}
	m.loaded = false
}

// park updates a member and parks its join. A join that was parked already is
// from a connection that its client has given up.
func (g *classicGroup) park(x *step, mem *member, r *machine.Request, m *kmsg.JoinGroupRequest) {
	g.support(mem.protocols, -1)
	mem.take(m)
	g.support(mem.protocols, 1)
	mem.clientID, mem.host = r.ClientID, x.hosts.of(r.Host)
	if mem.join != 0 {
		replyJoinError(x, mem.join, mem.joinVersion, mem.id, kerr.RebalanceInProgress)
	} else {
		g.joined++
	}
	mem.join, mem.joinVersion, mem.asked = r.ID, m.Version, x.now.UnixMilli()
}

// forgetPending removes a pending member, which was refused.
func (g *classicGroup) forgetPending(x *step, id string) {
	if g.pending[id] != nil {
		g.forget(id)
		x.cancel(sessionKey(g, id))
	}
}

func sessionKey(g *classicGroup, memberID string) machine.TimerKey {
	return machine.TimerKey{Kind: TimerSession, ID: g.id, Member: memberID}
}

// uuid writes random bytes as a version 4 UUID.
func uuid(b [16]byte) string {
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	s := hex.EncodeToString(b[:])
	return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
}

func joinError(x *step, r *machine.Request, m *kmsg.JoinGroupRequest, memberID string, err *kerr.Error) {
	replyJoinError(x, r.ID, m.Version, memberID, err)
}

func replyJoinError(x *step, id machine.RequestID, version int16, memberID string, err *kerr.Error) {
	resp := kmsg.NewPtrJoinGroupResponse()
	resp.Version, resp.ErrorCode = version, err.Code
	resp.Generation, resp.MemberID = -1, memberID
	x.reply(id, resp)
}

// joinResponse is the answer that tells a member of the current generation.
func (g *classicGroup) joinResponse(mem *member, version int16) *kmsg.JoinGroupResponse {
	resp := kmsg.NewPtrJoinGroupResponse()
	resp.Version = version
	resp.Generation, resp.MemberID, resp.LeaderID = g.generation, mem.id, g.leader
	protocolType, protocol := g.protocolType, g.protocol
	resp.ProtocolType, resp.Protocol = &protocolType, &protocol
	if g.leader == mem.id {
		resp.Members = g.joinMembers()
	}
	return resp
}

// joinMembers lists the members for the leader.
func (g *classicGroup) joinMembers() []kmsg.JoinGroupResponseMember {
	out := make([]kmsg.JoinGroupResponseMember, 0, g.members.len())
	for m := g.members.first; m != nil; m = m.next {
		e := kmsg.NewJoinGroupResponseMember()
		e.MemberID, e.InstanceID, e.ProtocolMetadata = m.id, m.instance, m.metadata(g.protocol)
		out = append(out, e)
	}
	return out
}

func (g *classicGroup) replyJoin(x *step, mem *member, id machine.RequestID, version int16) {
	x.reply(id, g.joinResponse(mem, version))
}
