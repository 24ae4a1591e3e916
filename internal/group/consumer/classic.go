package consumer

import (
	"encoding/binary"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/classic"
	"muster/internal/group/kind"
	"muster/internal/group/modern"
	"muster/internal/group/schema"
	"muster/internal/group/subscription"
	"muster/internal/journal"
	"muster/internal/machine"
	"muster/internal/metadata"
)

// findClassic returns the member of the classic protocol that a request is of.
func (g *Group) findClassic(id string, instance *string, generation int32) (*Member, *kerr.Error) {
	mem := g.Member(id)
	if instance != nil {
		if mem = g.Instances[*instance]; mem != nil && mem.ID != id {
			return nil, kerr.FencedInstanceID
		}
	}
	switch {
	case mem == nil || mem.Metadata.Classic == nil:
		return nil, kerr.UnknownMemberID
	case generation != mem.Now().Epoch:
		return nil, kerr.IllegalGeneration
	}
	return mem, nil
}

// SyncClassic handles SyncGroup of a member of the classic protocol in a consumer group.
func (g *Group) SyncClassic(x *kind.Step, r *machine.Request, m *kmsg.SyncGroupRequest) {
	mem, err := g.findClassic(m.MemberID, m.InstanceID, m.Generation)
	var protocol schema.ClassicProtocol
	if err == nil {
		var ok bool
		if protocol, ok = namedProtocol(mem.Metadata.Classic, m.Protocol); !ok || classic.Differs(m.ProtocolType, subscription.ConsumerType) {
			err = kerr.InconsistentGroupProtocol
		}
	}
	if err != nil {
		classic.ReplySyncError(x, r.ID, m.Version, err)
		return
	}
	now := mem.Now()
	if g.TargetEpoch > now.Epoch && now.State != modern.Unrevoked {
		// Who has to let go of something has joined for that, and is told with its next heartbeat.
		g.waitForJoin(x, mem)
		classic.ReplySyncError(x, r.ID, m.Version, kerr.RebalanceInProgress)
		return
	}
	g.stopSyncTimer(x, mem)
	g.Touch(x, mem)
	resp := kmsg.NewPtrSyncGroupResponse()
	protocolType := subscription.ConsumerType
	resp.Version, resp.ProtocolType, resp.Protocol = m.Version, &protocolType, &protocol.Name
	resp.MemberAssignment = AssignmentBytes(x.Image, modern.PartsHeld(now.Assigned), protocol.Metadata)
	x.Reply(r.ID, resp)
}

// maxAssignmentVersion is the newest version of assignments.
const maxAssignmentVersion = 3

// AssignmentBytes writes partitions as a client of the classic protocol reads them: by
// their topics' names, in the version of its subscription.
func AssignmentBytes(image *metadata.Image, list []Partition, subscription []byte) []byte {
	a := kmsg.NewConsumerMemberAssignment()
	if len(subscription) >= 2 {
		a.Version = min(max(int16(binary.BigEndian.Uint16(subscription)), 0), maxAssignmentVersion)
	}
	for i, p := range list {
		if i == 0 || p.Topic != list[i-1].Topic {
			t := kmsg.NewConsumerMemberAssignmentTopic()
			if image != nil && image.TopicByID(p.Topic) != nil {
				t.Topic = image.TopicByID(p.Topic).Name
			}
			a.Topics = append(a.Topics, t)
		}
		t := &a.Topics[len(a.Topics)-1]
		t.Partitions = append(t.Partitions, p.Number)
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

// HeartbeatClassic handles Heartbeat of a member of the classic protocol in a consumer group.
// It is told to join again if its target is newer, if it has to let go of something, or
// if what it waits for is free now. As any heartbeat it has the group look at its topics,
// and make a target if that is due: no one else might come for it.
func (g *Group) HeartbeatClassic(x *kind.Step, m *kmsg.HeartbeatRequest) *kerr.Error {
	mem, err := g.findClassic(m.MemberID, m.InstanceID, m.Generation)
	if err != nil {
		return err
	}
	g.Touch(x, mem)
	x.From = len(x.Records)
	g.Bump(x, modern.Change{})
	g.Refresh(x)
	g.Retarget(x)
	now := mem.Now()
	if now.Epoch < g.TargetEpoch || now.State == modern.Unrevoked || now.State == modern.Unreleased && !g.isWaiting(x, mem) {
		g.waitForJoin(x, mem)
		return kerr.RebalanceInProgress
	}
	return nil
}

// isWaiting says whether someone else still has, or may have, a partition that a member
// is to have.
func (g *Group) isWaiting(x *kind.Step, mem *Member) bool {
	for _, p := range g.wantedPartitions(mem, x.Image) {
		if !g.isFree(p, mem) {
			return true
		}
	}
	return false
}

// LeaveClassic handles what LeaveGroup says of one member of a consumer group, of either
// protocol.
func (g *Group) LeaveClassic(x *kind.Step, r *machine.Request, m *kmsg.LeaveGroupRequestMember) *kerr.Error {
	mem := g.Member(m.MemberID)
	if m.InstanceID != nil {
		// An administrator names no member id.
		if mem = g.Instances[*m.InstanceID]; mem != nil && m.MemberID != "" && mem.ID != m.MemberID {
			return kerr.FencedInstanceID
		}
	}
	if mem == nil {
		return kerr.UnknownMemberID
	}
	g.AddLeaveTrigger(x, r, mem)
	g.Fence(x, mem)
	return nil
}

// Session is how long a member may be silent: in the classic protocol it says so
// itself.
func (g *Group) Session(x *kind.Step, mem *Member) time.Duration {
	if mem.Metadata != nil && mem.Metadata.Classic != nil && mem.Metadata.Classic.SessionTimeoutMillis > 0 {
		return time.Duration(mem.Metadata.Classic.SessionTimeoutMillis) * time.Millisecond
	}
	return x.Cfg.Consumer.Of(g.ID).Session
}

// waitForJoin gives a member its rebalance timeout to join again, from when it was first
// told to.
func (g *Group) waitForJoin(x *kind.Step, mem *Member) {
	if mem.JoinSeq == 0 {
		mem.JoinSeq = x.Arm(mem.Timer(kind.TimerJoin, g.ID), x.Now.Add(mem.rebalanceTimeout()))
	}
}

func (g *Group) stopJoinTimer(x *kind.Step, mem *Member) {
	if mem.JoinSeq != 0 {
		mem.JoinSeq = 0
		x.Cancel(mem.Timer(kind.TimerJoin, g.ID))
	}
}

func (g *Group) stopSyncTimer(x *kind.Step, mem *Member) {
	if mem.SyncSeq != 0 {
		mem.SyncSeq = 0
		x.Cancel(mem.Timer(kind.TimerSync, g.ID))
	}
}

// classicFired fences a member that has not joined again, or not asked for its
// assignment, in time.
func (g *Group) classicFired(x *kind.Step, e machine.TimerFired) {
	mem := g.Member(e.Key.Member)
	switch {
	case mem == nil:
	case e.Key.Kind == kind.TimerJoin && mem.JoinSeq == e.Seq:
		mem.JoinSeq = 0
		modern.AddMemberTrigger(x, journal.TriggerNoJoin, mem, nil)
		g.Fence(x, mem)
	case e.Key.Kind == kind.TimerSync && mem.SyncSeq == e.Seq:
		mem.SyncSeq = 0
		modern.AddMemberTrigger(x, journal.TriggerNoSync, mem, nil)
		g.Fence(x, mem)
	}
}

// useProtocolTimers lets the timers of a member be those of the protocol that it uses now.
func (g *Group) useProtocolTimers(x *kind.Step, mem *Member) {
	if mem.Metadata.Classic != nil {
		mem.StopRevoking(x, g.ID)
		return
	}
	g.stopJoinTimer(x, mem)
	g.stopSyncTimer(x, mem)
	if mem.Now().State == modern.Unrevoked && mem.RevokeSeq == 0 {
		mem.StartRevoking(x, g.ID, mem.rebalanceTimeout())
	}
}
