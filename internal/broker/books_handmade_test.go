package broker_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// handmade are members of a group that send their requests by hand: such as no client
// library would, and so that a rebalance lasts as long as a test wants.
type handmade struct {
	t          *testing.T
	c          *kgo.Client
	other      *kgo.Client // Of the second member: on a connection one waits for the other.
	group      string
	id         string
	generation int32
	second     chan *kmsg.JoinGroupResponse // Of the second member, while it joins.
}

// joinRequest is one of a consumer of orders.
func (h *handmade) joinRequest(id string) *kmsg.JoinGroupRequest {
	sub := kmsg.NewConsumerMemberMetadata()
	sub.Topics = []string{"orders"}
	req := kmsg.NewPtrJoinGroupRequest()
	req.Group, req.MemberID, req.ProtocolType = h.group, id, "consumer"
	req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = 30*60_000, 30*60_000
	req.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: sub.AppendTo(nil)}}
	return req
}

func (h *handmade) send(ctx context.Context, c *kgo.Client, req *kmsg.JoinGroupRequest) *kmsg.JoinGroupResponse {
	resp, err := req.RequestWith(ctx, c)
	if err == nil && resp.ErrorCode == kerr.MemberIDRequired.Code {
		req.MemberID = resp.MemberID
		resp, err = req.RequestWith(ctx, c)
	}
	if err == nil {
		err = kerr.ErrorForCode(resp.ErrorCode)
	}
	if err != nil {
		h.t.Error(err)
		return kmsg.NewPtrJoinGroupResponse()
	}
	return resp
}

// enter has the first member join, alone or along with the second one, and assign
// partitions 0 and 1 to itself, and no one the others.
func (h *handmade) enter() {
	h.t.Helper()
	resp := h.send(h.t.Context(), h.c, h.joinRequest(h.id))
	h.id, h.generation = resp.MemberID, resp.Generation
	members := []string{h.id}
	if h.second != nil {
		members = append(members, (<-h.second).MemberID)
		h.second = nil
	}
	a := kmsg.NewConsumerMemberAssignment()
	a.Topics = []kmsg.ConsumerMemberAssignmentTopic{{Topic: "orders", Partitions: []int32{0, 1}}}
	req := kmsg.NewPtrSyncGroupRequest()
	req.Group, req.Generation, req.MemberID, req.ProtocolType, req.Protocol = h.group, h.generation, h.id, new("consumer"), new("range")
	req.GroupAssignment = []kmsg.SyncGroupRequestGroupAssignment{{MemberID: h.id, MemberAssignment: a.AppendTo(nil)}}
	synced, err := req.RequestWith(h.t.Context(), h.c)
	if err == nil {
		err = kerr.ErrorForCode(synced.ErrorCode)
	}
	must(h.t, err)
	if len(members) > 1 {
		h.remove(members[1])
	}
}

// hold has a second member join, which waits for the first one until that one enters again.
func (h *handmade) hold() {
	h.t.Helper()
	h.second = make(chan *kmsg.JoinGroupResponse, 1)
	answered := h.second
	go func() { answered <- h.send(h.t.Context(), h.other, h.joinRequest("")) }()
}

// remove has a member leave.
func (h *handmade) remove(id string) {
	h.t.Helper()
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Group, req.Members = h.group, []kmsg.LeaveGroupRequestMember{{MemberID: id}}
	if resp, err := req.RequestWith(h.t.Context(), h.c); err != nil || resp.ErrorCode != 0 {
		h.t.Fatal(err, resp)
	}
}

// hold has the group with members by hand rebalance until it is released.
func (a *account) hold() {
	a.t.Helper()
	a.partial.hold()
	a.partialBecomes("PreparingRebalance")
	for _, p := range a.group("partial").places {
		p.owner = left
	}
	a.group("partial").members = 2
}

// release ends the rebalance. The second member leaves, so the first one joins once more.
func (a *account) release() {
	a.t.Helper()
	a.partial.enter()
	a.partial.enter()
	a.partialBecomes("Stable")
	for s, p := range a.group("partial").places {
		if p.owner = ownerless; s.partition < 2 {
			p.owner = owned
		}
	}
	a.group("partial").members = 1
}

func (a *account) partialBecomes(state string) {
	a.t.Helper()
	eventually(a.t, "the group is "+state, func(ctx context.Context) error {
		d, err := a.adm.DescribeGroups(ctx, "partial")
		if err == nil && d["partial"].State != state {
			err = fmt.Errorf("it is %s", d["partial"].State)
		}
		return err
	})
}
