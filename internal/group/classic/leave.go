package classic

import (
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/kind"
	"muster/internal/journal"
	"muster/internal/machine"
)

// leave handles LeaveGroup: of one member up to version 2, of several after it.
func leave(x *kind.Step, r *machine.Request, m *kmsg.LeaveGroupRequest) {
	resp := kmsg.NewPtrLeaveGroupResponse()
	resp.Version = m.Version
	x.Weigh(m.Group)
	if m.Group == "" {
		resp.ErrorCode = kerr.InvalidGroupID.Code
		x.Reply(r.ID, resp)
		return
	}
	members := m.Members
	if m.Version < 3 {
		members = []kmsg.LeaveGroupRequestMember{{MemberID: m.MemberID}}
	}
	var left []journal.Trigger
	for i := range members {
		out := kmsg.NewLeaveGroupResponseMember()
		out.MemberID, out.InstanceID = members[i].MemberID, members[i].InstanceID
		// A consumer group may become a classic one with this, which is another.
		why, err := leaveOne(x, m.Group, r, &members[i])
		if err != nil {
			out.ErrorCode = err.Code
		}
		if why != nil {
			left = append(left, *why)
		}
		resp.Members = append(resp.Members, out)
	}
	if m.Version < 3 {
		resp.ErrorCode, resp.Members = resp.Members[0].ErrorCode, nil
	}
	if g, ok := x.Groups[m.Group].(*Group); ok {
		g.afterLeave(x, left)
	}
	x.Reply(r.ID, resp)
}

// leaveOne removes one member. The trigger is nil if it was only pending.
func leaveOne(x *kind.Step, group string, r *machine.Request, m *kmsg.LeaveGroupRequestMember) (*journal.Trigger, *kerr.Error) {
	if h, ok := x.Groups[group].(Host); ok {
		return nil, h.LeaveClassic(x, r, m)
	}
	g, ok := x.Groups[group].(*Group)
	if !ok {
		return nil, kerr.UnknownMemberID
	}
	if g.Pending[m.MemberID] != nil && m.InstanceID == nil {
		g.ForgetPending(x, m.MemberID)
		return nil, nil
	}
	id := m.MemberID
	if id == "" && m.InstanceID != nil {
		// An administrator removes a static member by its instance id.
		if holder := g.Members.static(*m.InstanceID); holder != nil {
			id = holder.ID
		}
	}
	mem, err := g.lookup(x, r, id, m.InstanceID)
	if err != nil {
		return nil, err
	}
	why := Trigger(journal.TriggerLeft, mem, m.Reason)
	if m.MemberID == "" || !isOf(r, mem) || strings.HasPrefix(why.Reason, adminReason) {
		why.Kind, why.By = journal.TriggerRemoved, kind.By(r)
	} else {
		why.At = g.positions(x, mem)
	}
	g.drop(x, mem)
	return &why, nil
}

// adminReason is how Java's AdminClient begins the reason of a removal.
const adminReason = "member was removed by an admin"

// isOf says whether a request comes from where its member joined. An
// administrator who removes a member by its id asks from elsewhere.
func isOf(r *machine.Request, m *Member) bool {
	return r.ClientID == m.ClientID && r.Host == kind.PlainHost(m.Host)
}

// afterLeave goes on without those who left. A pending member that left may
// have been all that a join phase waited for.
func (g *Group) afterLeave(x *kind.Step, left []journal.Trigger) {
	if g.State == PreparingRebalance {
		g.Rebalance.Add(left...)
		g.maybeComplete(x)
		return
	}
	if len(left) > 0 {
		g.PrepareRebalance(x, left...)
	}
}
