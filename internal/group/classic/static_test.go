package classic

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// joinAs has someone join, with a member id if they have one, as a static member if they name
// an instance.
func (s *small) joinAs(member string, instance *string) *kmsg.JoinGroupResponse {
	req := kmsg.NewPtrJoinGroupRequest()
	req.Version, req.Group, req.ProtocolType, req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = 5, "g", "consumer", 10_000, 60_000
	req.MemberID, req.InstanceID = member, instance
	req.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: subscribes("t")}}
	for _, r := range s.send(req).Replies {
		if r.ID == s.last {
			return r.Msg.(*kmsg.JoinGroupResponse)
		}
	}
	return nil // It waits.
}

// Whoever came before under an instance id must not go on beside who came last (KIP-345).
func TestAnInstanceIDIsOfWhoCameLast(t *testing.T) {
	s, name := newSmall(t), "instance"
	s.joinAs("", &name)
	g := s.form(0)
	s.settle(g)
	old := g.Members.First.ID
	resp := s.joinAs("", &name)
	if now := g.Members.First.ID; resp == nil || resp.MemberID != now || now == old || g.State != Stable || g.Members.Len() != 1 {
		t.Fatalf("the place goes to %+v in a group that is %s", resp, g.StateName())
	}
	beat := kmsg.NewPtrHeartbeatRequest()
	beat.Version, beat.Group, beat.Generation, beat.InstanceID = 4, "g", g.Generation, &name
	for member, want := range map[string]int16{old: kerr.FencedInstanceID.Code, g.Members.First.ID: 0} {
		beat.MemberID = member
		if got := s.send(beat).Replies[0].Msg.(*kmsg.HeartbeatResponse).ErrorCode; got != want {
			t.Errorf("%s is answered with %d, want %d", member, got, want)
		}
	}
	other := "another"
	beat.InstanceID = &other
	if got := s.send(beat).Replies[0].Msg.(*kmsg.HeartbeatResponse).ErrorCode; got != kerr.UnknownMemberID.Code {
		t.Errorf("an instance that never joined is answered with %d", got)
	}
}

// When group.max.size was lowered, those who join again last are left out.
func TestWhoComesBackLastToASmallerGroupIsLeftOut(t *testing.T) {
	s := newSmall(t)
	g := s.form(3)
	s.settle(g)
	s.Cfg.MaxSize = 2
	var members []string
	for m := g.Members.First; m != nil; m = m.Next {
		members = append(members, m.ID)
	}
	refused := 0
	for _, m := range members { // The leader is first: that it joins again begins the rebalance.
		if resp := s.joinAs(m, nil); resp != nil && resp.ErrorCode == kerr.GroupMaxSizeReached.Code {
			refused++
		}
	}
	if refused != 1 || g.Members.Len() != 2 || g.Members.Get(members[2]) != nil || g.State != CompletingRebalance {
		t.Errorf("%d are refused, %d are members of a group that is %s", refused, g.Members.Len(), g.StateName())
	}
}
