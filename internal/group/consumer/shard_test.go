package consumer

import (
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/classic"
	"muster/internal/group/kind"
	"muster/internal/group/modern"
	"muster/internal/group/schema"
	"muster/internal/machine"
	"muster/internal/metadata"
	"muster/internal/metadata/config"
)

// small is as much of a shard as groups of both kinds need.
type small struct {
	kind.Shard
	t     *testing.T
	now   time.Time
	image *metadata.Image
	n     byte
}

var topicT = metadata.TopicID{7}

func newSmall(t *testing.T) *small {
	edit := metadata.NewImage(&config.Broker{}).Edit()
	edit.PutTopic(metadata.Topic{Name: "t", ID: topicT, Partitions: make([]metadata.Partition, 2)})
	s := &small{Shard: kind.NewShard(kind.DefaultConfig()), t: t, now: time.Unix(1_700_000_000, 0), image: edit.Image()}
	s.ApplyRecord = func(r machine.Record) {
		rec := r.(schema.Record)
		g := s.Groups[rec.GroupID()]
		if g == nil || g.Kind() != rec.Kind() {
			if rec.IsTombstone() {
				return
			}
			if g = classic.New(kind.Base{ID: rec.GroupID()}); rec.Kind() == schema.Consumer {
				g = New(kind.Base{ID: rec.GroupID()})
			}
			s.Groups[rec.GroupID()] = g
		}
		if g.Replay(rec); g.IsGone() {
			g.Common().Gone = true
			delete(s.Groups, rec.GroupID())
		}
	}
	return s
}

func (s *small) send(m kmsg.Request) machine.Effects {
	var x kind.Step
	s.n++
	x.Begin(&s.Shard, &machine.Input{Now: s.now, Random: [16]byte{s.n}, Image: s.image})
	x.Req = machine.Request{ID: machine.RequestID(s.n), ClientID: "c", Host: "h", Msg: m}
	all := append(slices.Clone(APIs), classic.APIs...)
	i := slices.IndexFunc(all, func(a kind.API) bool { return a.Key.Int16() == m.Key() })
	if i < 0 {
		s.t.Fatalf("%T is not handled", m)
	}
	all[i].Serve(&x, &x.Req)
	return x.Finish()
}

// stableClassic is a classic group of one member, m, which has both partitions.
func (s *small) stableClassic() {
	sub, all := kmsg.NewConsumerMemberMetadata(), kmsg.NewConsumerMemberAssignment()
	sub.Topics = []string{"t"}
	all.Topics = []kmsg.ConsumerMemberAssignmentTopic{{Topic: "t", Partitions: []int32{0, 1}}}
	protocol, leader := "range", "m"
	s.ApplyRecord(&schema.GroupRecord{Group: "g", Value: &schema.Group{
		ProtocolType: "consumer", Generation: 5, Protocol: &protocol, Leader: &leader, CurrentStateTimestamp: -1,
		Members: []schema.GroupMember{{MemberID: "m", SessionTimeoutMillis: 10_000, RebalanceTimeoutMillis: 60_000, Subscription: sub.AppendTo(nil), Assignment: all.AppendTo(nil)}},
	}})
	var x kind.Step
	x.Begin(&s.Shard, &machine.Input{Now: s.now, Image: s.image})
	s.Groups["g"].Loaded(&x)
}

func (s *small) beat(member string, epoch int32) *kmsg.ConsumerGroupHeartbeatResponse {
	req := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	req.Version, req.Group, req.MemberID, req.MemberEpoch = 1, "g", member, epoch
	if epoch == 0 {
		req.RebalanceTimeoutMillis, req.SubscribedTopicNames, req.Topics = 60_000, []string{"t"}, []kmsg.ConsumerGroupHeartbeatRequestTopic{}
	}
	return s.send(req).Replies[0].Msg.(*kmsg.ConsumerGroupHeartbeatResponse)
}

// An upgrade takes nothing from anyone: the classic member keeps what it has until it is told.
func TestAnUpgradeKeepsWhatClassicMembersHave(t *testing.T) {
	s := newSmall(t)
	s.stableClassic()
	if resp := s.beat("new", 0); resp.ErrorCode != 0 {
		t.Fatalf("the heartbeat is answered with %d", resp.ErrorCode)
	}
	g, ok := s.Groups["g"].(*Group)
	if !ok || g.Present != 2 || g.Classic != 1 {
		t.Fatalf("the group is %+v", s.Groups["g"])
	}
	if now := g.Member("m").Now(); len(now.Assigned) != 2 || now.Epoch != 5 || now.State != modern.Stable {
		t.Errorf("the classic member is in %+v", now)
	}
	if now := g.Member("new").Now(); len(now.Assigned) != 0 || now.State != modern.Unreleased {
		t.Errorf("the new member is in %+v", now)
	}
}

// When the last member of the consumer protocol is gone, the classic ones rebalance, and that
// they do is in the batch that makes them a classic group.
func TestADowngradeRebalances(t *testing.T) {
	s := newSmall(t)
	s.stableClassic()
	s.beat("new", 0)
	req := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	req.Version, req.Group, req.MemberID, req.MemberEpoch = 1, "g", "new", modern.EpochLeave
	fx := s.send(req)
	g, ok := s.Groups["g"].(*classic.Group)
	if !ok || g.State != classic.PreparingRebalance || g.Members.Len() != 1 {
		t.Fatalf("the group is %+v", s.Groups["g"])
	}
	for _, b := range fx.Batches {
		for _, r := range b.Records {
			if r, ok := r.(*schema.RebalanceRecord); ok && b.Whole && r.Value != nil {
				return
			}
		}
	}
	t.Errorf("no batch says that it rebalances: %+v", fx.Batches)
}

// After a load a partition may be some client's of whom nothing was heard yet.
func TestNothingIsGivenAfterALoadUntilAllWereHeard(t *testing.T) {
	s := newSmall(t)
	g := New(kind.Base{ID: "g"})
	for _, id := range []string{"a", "b"} {
		g.Replay(&schema.ConsumerMemberRecord{Group: "g", Member: id, Value: &schema.ConsumerMember{}})
		g.Replay(CurrentRecord("g", id, &Current{Epoch: 1}))
	}
	s.Groups["g"] = g
	var x kind.Step
	x.Begin(&s.Shard, &machine.Input{Now: s.now, Image: s.image})
	g.Loaded(&x)
	a, b, p := g.Member("a"), g.Member("b"), Partition{Topic: topicT}
	if g.NoteHeard(&x, a); g.isFree(p, a) {
		t.Error("it is given before all were heard of")
	}
	if g.NoteHeard(&x, b); !g.isFree(p, a) {
		t.Error("it is not given when all were heard of")
	}
	if g.Owners[p] = b; g.isFree(p, a) || !g.isFree(p, b) {
		t.Error("it is free though a member has it, or not to who has it")
	}
}
