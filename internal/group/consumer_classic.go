package group

import (
	"encoding/binary"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/schema"
	"muster/internal/journal"
	"muster/internal/machine"
	"muster/internal/metadata"
)

// findMixed returns the member of the classic protocol that a request is of.
func (g *consumerGroup) findMixed(id string, instance *string, generation int32) (*consumerMember, *kerr.Error) {
	mem := g.member(id)
	if instance != nil {
		if mem = g.instances[*instance]; mem != nil && mem.id != id {
			return nil, kerr.FencedInstanceID
		}
	}
	switch {
	case mem == nil || mem.says.Classic == nil:
		return nil, kerr.UnknownMemberID
	case generation != mem.now().epoch:
		return nil, kerr.IllegalGeneration
	}
	return mem, nil
}

// syncClassic handles SyncGroup of a member of the classic protocol in a consumer group.
func (g *consumerGroup) syncClassic(x *step, r *machine.Request, m *kmsg.SyncGroupRequest) {
	mem, err := g.findMixed(m.MemberID, m.InstanceID, m.Generation)
	var protocol schema.ClassicProtocol
	if err == nil {
		var ok bool
		if protocol, ok = namedProtocol(mem.says.Classic, m.Protocol); !ok || differs(m.ProtocolType, consumerType) {
			err = kerr.InconsistentGroupProtocol
		}
	}
	if err != nil {
		replySyncError(x, r.ID, m.Version, err)
		return
	}
	now := mem.now()
	if g.targetEpoch > now.epoch && now.state != memberUnrevoked {
		// Who has to let go of something has joined for that, and is told with its next heartbeat.
		g.waitForJoin(x, mem)
		replySyncError(x, r.ID, m.Version, kerr.RebalanceInProgress)
		return
	}
	g.stopSyncTimer(x, mem)
	g.touchConsumer(x, mem)
	resp := kmsg.NewPtrSyncGroupResponse()
	protocolType := consumerType
	resp.Version, resp.ProtocolType, resp.Protocol = m.Version, &protocolType, &protocol.Name
	resp.MemberAssignment = assignmentBytes(x.image, placesOf(now.assigned), protocol.Metadata)
	x.reply(r.ID, resp)
}

// maxAssignmentVersion is the newest version of assignments.
const maxAssignmentVersion = 3

// assignmentBytes writes partitions as a client of the classic protocol reads them: by
// their topics' names, in the version of its subscription.
func assignmentBytes(image *metadata.Image, list []part, subscription []byte) []byte {
	a := kmsg.NewConsumerMemberAssignment()
	if len(subscription) >= 2 {
		a.Version = min(max(int16(binary.BigEndian.Uint16(subscription)), 0), maxAssignmentVersion)
	}
	for i, p := range list {
		if i == 0 || p.topic != list[i-1].topic {
			t := kmsg.NewConsumerMemberAssignmentTopic()
			if image != nil && image.TopicByID(p.topic) != nil {
				t.Topic = image.TopicByID(p.topic).Name
			}
			a.Topics = append(a.Topics, t)
		}
		t := &a.Topics[len(a.Topics)-1]
		t.Partitions = append(t.Partitions, p.n)
	}
	known := a.Topics[:0]
	for _, t := range a.Topics {
		if t.Topic != "" { // One that is gone is nothing to work on.
			known = append(known, t)
		}
	}
	a.Topics = known
	return a.AppendTo(nil)
}

// heartbeatClassic handles Heartbeat of a member of the classic protocol in a consumer group.
// It is told to join again if its target is newer, if it has to let go of something, or
// if what it waits for is free now. As any heartbeat it has the group look at its topics,
// and make a target if that is due: nobody else might come for it.
func (g *consumerGroup) heartbeatClassic(x *step, m *kmsg.HeartbeatRequest) *kerr.Error {
	mem, err := g.findMixed(m.MemberID, m.InstanceID, m.Generation)
	if err != nil {
		return err
	}
	g.touchConsumer(x, mem)
	x.from = len(x.records)
	g.bump(x, change{})
	g.refresh(x)
	g.retarget(x)
	now := mem.now()
	if now.epoch < g.targetEpoch || now.state == memberUnrevoked || now.state == memberUnreleased && !g.isWaiting(x, mem) {
		g.waitForJoin(x, mem)
		return kerr.RebalanceInProgress
	}
	return nil
}

// isWaiting says whether somebody else still has, or may have, a partition that a member
// is to have.
func (g *consumerGroup) isWaiting(x *step, mem *consumerMember) bool {
	for _, p := range g.wanted(mem, x.image) {
		if !g.isFree(p, mem) {
			return true
		}
	}
	return false
}

// leaveClassic handles what LeaveGroup says of one member of a consumer group, of either
// protocol.
func (g *consumerGroup) leaveClassic(x *step, r *machine.Request, m *kmsg.LeaveGroupRequestMember) *kerr.Error {
	mem := g.member(m.MemberID)
	if m.InstanceID != nil {
		// An administrator names no member id.
		if mem = g.instances[*m.InstanceID]; mem != nil && m.MemberID != "" && mem.id != m.MemberID {
			return kerr.FencedInstanceID
		}
	}
	if mem == nil {
		return kerr.UnknownMemberID
	}
	g.blameLeave(x, r, mem)
	g.fence(x, mem)
	return nil
}

// sessionOf is how long a member may be silent: in the classic protocol it says so
// itself.
func (g *consumerGroup) sessionOf(x *step, mem *consumerMember) time.Duration {
	if mem.says != nil && mem.says.Classic != nil && mem.says.Classic.SessionTimeoutMillis > 0 {
		return time.Duration(mem.says.Classic.SessionTimeoutMillis) * time.Millisecond
	}
	return x.cfg.Consumer.of(g.id).Session
}

// waitForJoin gives a member its rebalance timeout to join again, from when it was first
// told to.
func (g *consumerGroup) waitForJoin(x *step, mem *consumerMember) {
	if mem.joinSeq == 0 {
		mem.joinSeq = x.arm(memberTimer(TimerJoin, g, mem), x.now.Add(mem.rebalanceTimeout()))
	}
}

func (g *consumerGroup) stopJoinTimer(x *step, mem *consumerMember) {
	if mem.joinSeq != 0 {
		mem.joinSeq = 0
		x.cancel(memberTimer(TimerJoin, g, mem))
	}
}

func (g *consumerGroup) stopSyncTimer(x *step, mem *consumerMember) {
	if mem.syncSeq != 0 {
		mem.syncSeq = 0
		x.cancel(memberTimer(TimerSync, g, mem))
	}
}

// classicFired fences a member that has not joined again, or not asked for its
// assignment, in time.
func (g *consumerGroup) classicFired(x *step, e machine.TimerFired) {
	mem := g.member(e.Key.Member)
	switch {
	case mem == nil:
	case e.Key.Kind == TimerJoin && mem.joinSeq == e.Seq:
		mem.joinSeq = 0
		blameMember(x, journal.TriggerNoJoin, mem, nil)
		g.fence(x, mem)
	case e.Key.Kind == TimerSync && mem.syncSeq == e.Seq:
		mem.syncSeq = 0
		blameMember(x, journal.TriggerNoSync, mem, nil)
		g.fence(x, mem)
	}
}

// suit lets the timers of a member be those of the protocol that it uses now.
func (g *consumerGroup) suit(x *step, mem *consumerMember) {
	if mem.says.Classic != nil {
		g.stopRevoking(x, mem)
		return
	}
	g.stopJoinTimer(x, mem)
	g.stopSyncTimer(x, mem)
	if mem.now().state == memberUnrevoked && mem.revokeSeq == 0 {
		g.giveTimeToRevoke(x, mem)
	}
}

// stopWaiting cancels all timers of a member.
func (g *consumerGroup) stopWaiting(x *step, mem *consumerMember) {
	g.stopRevoking(x, mem)
	g.stopJoinTimer(x, mem)
	g.stopSyncTimer(x, mem)
	if mem.timerSeq != 0 {
		x.cancel(memberTimer(TimerSession, g, mem))
		mem.timerSeq = 0
	}
}
