package group

import (
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/classic"
	"muster/internal/group/kind"
	"muster/internal/machine"
	"muster/internal/metadata"
)

// joining is a shard that members with large metadata join.
type joining struct {
	*testing.T
	shard  *Shard
	id     machine.RequestID
	others int64
	now    time.Time
}

func newJoining(t *testing.T, maxBytes int64) *joining {
	cfg := kind.DefaultConfig()
	cfg.MaxBytes = maxBytes
	j := &joining{T: t, shard: NewShard(cfg), now: time.Unix(1000, 0)}
	j.step(machine.Loaded{Epoch: 1})
	return j
}

func (j *joining) step(e machine.Event) machine.Effects {
	j.Helper()
	fx := j.shard.Step(machine.Input{Now: j.now, Random: [16]byte{byte(j.id)}, Image: &metadata.Image{}, Others: j.others, Event: e})
	must(j, j.shard.CheckInvariants())
	return fx
}

// join has a new member join, of a version that needs no second request, and returns the
// error that it is told at once.
func (j *joining) join(group string, metadata int) *kerr.Error {
	j.Helper()
	j.id++
	req := kmsg.NewPtrJoinGroupRequest()
	req.Version, req.Group, req.ProtocolType = 3, group, "consumer"
	req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = 10_000, 10_000
	req.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: make([]byte, metadata)}}
	fx := j.step(machine.Request{ID: j.id, ClientID: "app", Host: "10.0.0.1", Msg: req})
	for _, r := range fx.Replies {
		if r.ID == j.id {
			err, _ := kerr.ErrorForCode(r.Msg.(*kmsg.JoinGroupResponse).ErrorCode).(*kerr.Error)
			return err
		}
	}
	return nil
}

func TestAMemberThatSaysMoreThanAMegabyteIsRefused(t *testing.T) {
	j := newJoining(t, 0)
	if err := j.join("g", kind.MaxMemberBytes); err != kerr.UnknownServerError {
		t.Errorf("too much: %v", err)
	}
	if len(j.shard.Groups) != 0 || j.shard.Weight() != 0 {
		t.Error("something is left of it")
	}
	if err := j.join("g", kind.MaxMemberBytes-4096); err != nil {
		t.Errorf("just enough: %v", err)
	}
}

func TestAGroupHoldsOnlySoMuchOfItsMembers(t *testing.T) {
	j := newJoining(t, 0)
	n := 0
	for ; j.join("g", 1_000_000) == nil; n++ {
	}
	if want := kind.MaxGroupBytes / 1_000_600; n != want {
		t.Errorf("%d members joined, want %d", n, want)
	}
	if err := j.join("g", 1_000_000); err != kerr.GroupMaxSizeReached {
		t.Errorf("then: %v", err)
	}
	if err := j.join("other", 1_000_000); err != nil {
		t.Errorf("another group: %v", err)
	}
}

func TestAllGroupsHoldOnlySoMuchOfTheirMembers(t *testing.T) {
	j := newJoining(t, 10_000_000)
	for i := range 9 {
		if err := j.join(fmt.Sprint("g", i), 1_000_000); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.join("late", 1_000_000); err != kerr.CoordinatorNotAvailable {
		t.Errorf("one too many: %v", err)
	}
	if err := j.join("small", 1000); err != nil {
		t.Errorf("a small one: %v", err)
	}
	j.others = 2_000_000
	if err := j.join("small", 1000); err != kerr.CoordinatorNotAvailable {
		t.Errorf("while other shards hold the rest: %v", err)
	}
	j.others = 0
	held := j.shard.Weight()
	j.now = j.now.Add(time.Hour)
	for i := range 9 { // Members go when they are not heard of.
		g := j.shard.classic(fmt.Sprint("g", i))
		mem := g.Members.First
		j.step(machine.TimerFired{Key: classic.SessionKey(g, mem.ID), Seq: mem.TimerSeq})
	}
	if left := j.shard.Weight(); left > held-9_000_000 {
		t.Errorf("of %d bytes %d are left", held, left)
	}
	if err := j.join("late", 1_000_000); err != nil {
		t.Errorf("with room again: %v", err)
	}
}

func TestMembersOfConsumerGroupsAreCountedToo(t *testing.T) {
	j := newJoining(t, 3_000_000)
	join := func(topics int) *kerr.Error {
		t.Helper()
		j.id++
		req := kmsg.NewPtrConsumerGroupHeartbeatRequest()
		req.Version, req.Group, req.MemberID, req.RebalanceTimeoutMillis = 1, "g", fmt.Sprint("m", j.id), 10_000
		for i := range topics {
			req.SubscribedTopicNames = append(req.SubscribedTopicNames, fmt.Sprintf("%0100d", i))
		}
		req.Topics = []kmsg.ConsumerGroupHeartbeatRequestTopic{}
		for _, r := range j.step(machine.Request{ID: j.id, ClientID: "app", Host: "10.0.0.1", Msg: req}).Replies {
			err, _ := kerr.ErrorForCode(r.Msg.(*kmsg.ConsumerGroupHeartbeatResponse).ErrorCode).(*kerr.Error)
			return err
		}
		return nil
	}
	if err := join(11_000); err != kerr.UnknownServerError {
		t.Errorf("more than a megabyte: %v", err)
	}
	for range 3 {
		if err := join(9_000); err != nil {
			t.Fatal(err)
		}
	}
	if err := join(9_000); err != kerr.CoordinatorNotAvailable {
		t.Errorf("one too many: %v", err)
	}
}

// A load is about all groups at once, and what it needed room for is not kept
// for the heartbeats that come after it.
func TestTheRoomOfALargeStepIsGivenBack(t *testing.T) {
	s, beat := beats(t)
	s.step.Out = machine.Effects{
		Replies: make([]machine.Reply, 10_000), Timers: make([]machine.Timer, 10_000), Notes: s.step.Out.Notes,
	}
	s.step.Records = make([]machine.Record, 10_000)
	beat()
	if x := &s.step; cap(x.Out.Replies) > kind.Keep || cap(x.Out.Timers) > kind.Keep || cap(x.Records) > kind.Keep {
		t.Errorf("room is kept for %d replies, %d timers and %d records", cap(x.Out.Replies), cap(x.Out.Timers), cap(x.Records))
	}
}
