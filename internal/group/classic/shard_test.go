package classic

import (
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/kind"
	"muster/internal/group/schema"
	"muster/internal/machine"
)

// small is as much of a shard as classic groups need.
type small struct {
	kind.Shard
	t    *testing.T
	now  time.Time
	last machine.RequestID
	n    byte
}

func newSmall(t *testing.T) *small {
	s := &small{Shard: kind.NewShard(kind.DefaultConfig()), t: t, now: time.Unix(1_700_000_000, 0)}
	s.ApplyRecord = func(r machine.Record) {
		rec := r.(schema.Record)
		g := s.Groups[rec.GroupID()]
		if g == nil {
			g = New(kind.Base{ID: rec.GroupID()})
			s.Groups[rec.GroupID()] = g
		}
		g.Replay(rec)
	}
	return s
}

func (s *small) step(event func(x *kind.Step)) machine.Effects {
	var x kind.Step
	s.n++
	x.Begin(&s.Shard, &machine.Input{Now: s.now, Random: [16]byte{s.n}})
	event(&x)
	return x.Finish()
}

func (s *small) send(m kmsg.Request) machine.Effects {
	s.last++
	return s.step(func(x *kind.Step) {
		i := slices.IndexFunc(APIs, func(a kind.API) bool { return a.Key.Int16() == m.Key() })
		if i < 0 {
			s.t.Fatalf("%T is not handled", m)
		}
		APIs[i].Serve(x, &machine.Request{ID: s.last, ClientID: "c", Host: "h", Msg: m})
	})
}

func (s *small) group() *Group { return s.Groups["g"].(*Group) }

// form has a number of members join and sync.
func (s *small) form(n int) *Group {
	for range n {
		req := kmsg.NewPtrJoinGroupRequest()
		req.Version, req.Group, req.ProtocolType, req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = 3, "g", "consumer", 10_000, 60_000
		req.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: subscribes("t")}}
		s.send(req)
	}
	for g := s.group(); g.State == PreparingRebalance; {
		s.now = s.now.Add(s.Cfg.InitialDelay)
		s.step(func(x *kind.Step) {
			g.Fired(x, machine.TimerFired{Key: JoinKey(g), Seq: g.JoinSeq})
		})
	}
	return s.group()
}

func (s *small) settle(g *Group) {
	for m := g.Members.First; m != nil; m = m.Next {
		req := kmsg.NewPtrSyncGroupRequest()
		req.Version, req.Group, req.MemberID, req.Generation = 5, "g", m.ID, g.Generation
		s.send(req)
	}
	if g.State != Stable {
		s.t.Fatalf("the group is %s", g.StateName())
	}
}

func TestWhoHasLeftIsWrittenWhileTheOthersJoinAgain(t *testing.T) {
	s := newSmall(t)
	g := s.form(3)
	s.settle(g)
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Version, req.Group = 5, "g"
	gone := g.Members.First.ID
	req.Members = []kmsg.LeaveGroupRequestMember{{MemberID: gone}}
	fx := s.send(req)
	var rebalance, departure bool
	for _, r := range fx.Batches[0].Records {
		switch r := r.(type) {
		case *schema.RebalanceRecord:
			rebalance = r.Value != nil && r.Value.Generation == g.Generation
		case *schema.DepartureRecord:
			departure = r.Value != nil && r.Member == gone
		}
	}
	if !rebalance || !departure || g.State != PreparingRebalance {
		t.Errorf("written are %+v, in %s", fx.Batches[0].Records, g.StateName())
	}
}

func TestCommitsAreRefusedBetweenJoinAndSync(t *testing.T) {
	s := newSmall(t)
	g := s.form(2)
	commit := func(generation int32) (err *kerr.Error) {
		req := kmsg.NewPtrOffsetCommitRequest()
		req.Version, req.Group, req.MemberID, req.Generation = 8, "g", g.Members.First.ID, generation
		s.step(func(x *kind.Step) { err = g.CheckCommit(x, &machine.Request{Msg: req}, req) })
		return err
	}
	if err := commit(g.Generation); err != kerr.RebalanceInProgress {
		t.Errorf("before the sync: %v", err)
	}
	if s.settle(g); commit(g.Generation) != nil {
		t.Errorf("in a stable group: %v", commit(g.Generation))
	}
	for _, other := range []int32{g.Generation - 1, g.Generation + 1} {
		if err := commit(other); err != kerr.IllegalGeneration {
			t.Errorf("of generation %d, when it is %d: %v", other, g.Generation, err)
		}
	}
}

// host is a group of another kind that serves classic members.
type host struct {
	kind.Group
	heartbeats int
}

func (*host) Weight() int64                                                         { return 0 }
func (*host) JoinClassic(*kind.Step, *machine.Request, *kmsg.JoinGroupRequest) bool { return true }
func (*host) SyncClassic(*kind.Step, *machine.Request, *kmsg.SyncGroupRequest)      {}
func (h *host) HeartbeatClassic(*kind.Step, *kmsg.HeartbeatRequest) *kerr.Error {
	h.heartbeats++
	return kerr.RebalanceInProgress
}

func (*host) LeaveClassic(*kind.Step, *machine.Request, *kmsg.LeaveGroupRequestMember) *kerr.Error {
	return kerr.FencedInstanceID
}

func TestGroupsOfAnotherKindServeTheirClassicMembers(t *testing.T) {
	s, h := newSmall(t), &host{}
	s.Groups["g"] = h
	beat := kmsg.NewPtrHeartbeatRequest()
	beat.Group, beat.MemberID = "g", "m"
	if fx := s.send(beat); h.heartbeats != 1 || fx.Replies[0].Msg.(*kmsg.HeartbeatResponse).ErrorCode != kerr.RebalanceInProgress.Code {
		t.Errorf("%d heartbeats, %+v", h.heartbeats, fx.Replies)
	}
	leave := kmsg.NewPtrLeaveGroupRequest()
	leave.Group, leave.MemberID = "g", "m"
	s.Groups["g"] = nil
	if fx := s.send(beat); fx.Replies[0].Msg.(*kmsg.HeartbeatResponse).ErrorCode != kerr.UnknownMemberID.Code {
		t.Errorf("without a group: %+v", fx.Replies)
	}
	s.Groups["g"] = h
	if fx := s.send(leave); fx.Replies[0].Msg.(*kmsg.LeaveGroupResponse).ErrorCode != kerr.FencedInstanceID.Code {
		t.Errorf("a leave: %+v", fx.Replies)
	}
}
