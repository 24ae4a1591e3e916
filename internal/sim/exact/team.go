package exact

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// teamGroup is the group whose members share the input partitions that no copier
// has for itself. Who gives one up and who gets it have different transactional
// ids, so none fences the other by its producer: it is the generation that does
// (KIP-447), and the pending offset for which the next owner waits.
const teamGroup = "team"

// maxInstances is how many instances of a worker are in the team at a time.
const maxInstances = 3

// member is the place of an instance in the team.
type member struct {
	id         string
	instance   *string
	generation int32
	synced     bool // it has partitions, or knows that it has none
	dismissed  bool // it was told that it must join again
	joining    bool // it is doing that
	aside      bool // while a transaction of before goes on
	moved      bool // it has done that, and not looked from where to copy on
}

// place is a member in a generation, as a transaction has it that began then.
type place struct {
	id         string
	instance   *string
	generation int32
}

func (m *member) place() place { return place{m.id, m.instance, m.generation} }

// told handles what any request of a member may be told.
func (m *member) told(code int16) {
	switch code {
	case kerr.RebalanceInProgress.Code, kerr.IllegalGeneration.Code, kerr.FencedInstanceID.Code:
		m.dismissed = true
	case kerr.UnknownMemberID.Code:
		m.dismissed, m.id = true, ""
	}
}

// toldIn is the same, of a place that may not be the member's any more.
func (m *member) toldIn(p place, code int16) {
	if m.synced && m.place() == p {
		m.told(code)
	}
}

// enlist makes a new instance of a worker, which will be a member. If there are
// many already, the oldest ends.
func (c *copier) enlist(x *instance) {
	x.member = &member{generation: -1}
	if c.w.plan.team.static {
		x.member.instance = &c.id
	}
	alive := slices.DeleteFunc(slices.Clone(c.runs), func(x *instance) bool { return x.dead })
	if len(alive) >= maxInstances {
		alive[0].dead = true
	}
	x.heartbeats()
}

// mustJoin says that a member is to join before it does anything else.
func (x *instance) mustJoin() bool { return x.member != nil && x.member.dismissed }

// call sends a request to the coordinator of the team, on a connection of its own.
func (x *instance) call(req kmsg.Request, timeout time.Duration, done func(kmsg.Response)) {
	m := message{from: x.name, to: x.w.coordinator(x.w.someImage(), offsetsTopic, teamGroup), body: req, timeout: timeout, ordered: true}
	x.w.send(m, func(answer any) {
		x.run(func() {
			resp, _ := answer.(kmsg.Response)
			done(resp)
		})
	})
}

// join joins the group, without the partitions that the instance had.
func (x *instance) join() {
	m, plan := x.member, &x.w.plan.team
	m.joining, m.synced, m.dismissed, m.moved, x.parts = true, false, false, false, nil
	meta := kmsg.NewConsumerMemberMetadata()
	meta.Topics = []string{inputTopic}
	p := kmsg.NewJoinGroupRequestProtocol()
	p.Name, p.Metadata = "range", meta.AppendTo(nil)
	req := kmsg.NewPtrJoinGroupRequest()
	req.Version, req.Group, req.MemberID, req.InstanceID, req.ProtocolType = 7, teamGroup, m.id, m.instance, "consumer"
	req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = int32(plan.session.Milliseconds()), int32(plan.rejoin.Milliseconds())
	req.Protocols = []kmsg.JoinGroupRequestProtocol{p}
	x.call(req, plan.rejoin+5*time.Second, func(r kmsg.Response) {
		resp, _ := r.(*kmsg.JoinGroupResponse)
		switch {
		case resp == nil || retriable(resp.ErrorCode):
			x.later(x.join)
		case resp.ErrorCode == kerr.MemberIDRequired.Code:
			m.id = resp.MemberID
			x.join()
		case resp.ErrorCode == kerr.UnknownMemberID.Code:
			m.id = ""
			x.later(x.join)
		case resp.ErrorCode != 0:
			x.die("JoinGroup", resp.ErrorCode)
		default:
			m.id, m.generation = resp.MemberID, resp.Generation
			x.sync(x.assign(resp))
		}
	})
}

// assign is the leader's work: who copies what.
func (x *instance) assign(resp *kmsg.JoinGroupResponse) []kmsg.SyncGroupRequestGroupAssignment {
	if resp.LeaderID != resp.MemberID {
		return nil
	}
	members := slices.SortedFunc(slices.Values(resp.Members), func(a, b kmsg.JoinGroupResponseMember) int { return cmp.Compare(a.MemberID, b.MemberID) })
	first := x.w.Rand.IntN(len(members))
	out := make([]kmsg.SyncGroupRequestGroupAssignment, len(members))
	for i := range members {
		t := kmsg.NewConsumerMemberAssignmentTopic()
		t.Topic = inputTopic
		for p := range x.w.plan.team.shared {
			if (first+int(p))%len(members) == i {
				t.Partitions = append(t.Partitions, int32(len(x.w.plan.copiers))+p)
			}
		}
		a := kmsg.NewConsumerMemberAssignment()
		a.Topics = []kmsg.ConsumerMemberAssignmentTopic{t}
		out[i].MemberID, out[i].MemberAssignment = members[i].MemberID, a.AppendTo(nil)
	}
	return out
}

// sync asks for the partitions of this member.
func (x *instance) sync(plan []kmsg.SyncGroupRequestGroupAssignment) {
	m := x.member
	req := kmsg.NewPtrSyncGroupRequest()
	req.Version, req.Group, req.MemberID, req.InstanceID, req.Generation, req.GroupAssignment = 4, teamGroup, m.id, m.instance, m.generation, plan
	x.call(req, x.w.plan.team.rejoin+5*time.Second, func(r kmsg.Response) {
		resp, _ := r.(*kmsg.SyncGroupResponse)
		switch {
		case resp == nil || retriable(resp.ErrorCode):
			x.later(func() { x.sync(plan) })
		case resp.ErrorCode == kerr.FencedInstanceID.Code:
			x.die("SyncGroup", resp.ErrorCode)
		case resp.ErrorCode != 0:
			m.told(resp.ErrorCode)
			x.later(x.join)
		default:
			x.own(resp.MemberAssignment)
		}
	})
}

// own takes the partitions that the instance was given.
func (x *instance) own(assignment []byte) {
	a := kmsg.NewConsumerMemberAssignment()
	if len(assignment) > 0 {
		if err := a.ReadFrom(assignment); err != nil {
			x.w.Violated("%s: an assignment cannot be read: %v", x.name, err)
		}
	}
	for _, t := range a.Topics {
		x.parts = append(x.parts, t.Partitions...)
	}
	x.w.Tracef("%s: has input %v in generation %d", x.name, x.parts, x.member.generation)
	m := x.member
	m.synced, m.joining = true, false
	if m.moved = m.aside; !m.moved {
		x.fetchOffsets()
	}
	m.aside = false
}

// heartbeats sends them as long as the instance lives and does not pause.
func (x *instance) heartbeats() {
	w, m := x.w, x.member
	if w.over || x.dead {
		return
	}
	w.After(w.Between(w.plan.team.session/6, w.plan.team.session/3), func() { x.run(x.heartbeats) })
	if !m.synced {
		return
	}
	req := kmsg.NewPtrHeartbeatRequest()
	req.Version, req.Group, req.MemberID, req.InstanceID, req.Generation = 4, teamGroup, m.id, m.instance, m.generation
	x.call(req, w.patience(), func(r kmsg.Response) {
		resp, _ := r.(*kmsg.HeartbeatResponse)
		if resp == nil {
			return
		}
		w.Count(fmt.Sprintf("Heartbeat %d", resp.ErrorCode))
		m.toldIn(place{req.MemberID, req.InstanceID, req.Generation}, resp.ErrorCode)
		if m.synced && m.dismissed && x.busy && w.Chance(w.plan.team.hasty) {
			w.Count("joins while a transaction goes on")
			m.aside = true
			x.join()
		}
	})
}
