package handler_test

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
	"muster/internal/auth"
	"muster/internal/coordinator"
	"muster/internal/handler"
	"muster/internal/metadata"
	"muster/internal/partition"
)

// slow has work on a partition, and what a coordinator does, take time.
type slow struct {
	*limited
	handler.Partitions
	handler.Coordinator
	took time.Duration
}

func (s *slow) Get(topic string, index int32) *partition.Partition {
	s.now = s.now.Add(s.took)
	return s.Partitions.Get(topic, index)
}

func (s *slow) Do(context.Context, string, coordinator.Client, kmsg.Request) kmsg.Response {
	s.now = s.now.Add(time.Hour)
	return &kmsg.HeartbeatResponse{Version: 4}
}

func newSlow(t *testing.T) *slow {
	s := &slow{limited: newLimited(t), took: 50 * time.Millisecond}
	s.Partitions, s.Coordinator = s.opts.Partitions, s.opts.Groups
	s.opts.Partitions, s.opts.Groups = s, s
	s.h = handler.New(s.opts)
	return s
}

func listOffsets() *kmsg.ListOffsetsRequest {
	req := kmsg.NewPtrListOffsetsRequest()
	req.Version, req.ReplicaID = 5, -1
	topic := kmsg.NewListOffsetsRequestTopic()
	topic.Topic = "t"
	topic.Partitions = append(topic.Partitions, kmsg.NewListOffsetsRequestTopicPartition())
	req.Topics = append(req.Topics, topic)
	return req
}

// A tenth of a thread is 100 ms of work in a second, which a new client has.
func TestTheTimeOfRequestsCountsAgainstTheQuota(t *testing.T) {
	s := newSlow(t)
	for _, req := range []kmsg.Request{listOffsets(), s.produceRequest(9, 0), limitedFetch(0, -1)} {
		s.set("alice", "-", metadata.RequestPercentage, 10)
		s.now = s.now.Add(2 * time.Hour) // She begins anew.
		ask := func(user string) (told, muted time.Duration) {
			resp, _, muted := s.ask(user, "app", req)
			millis, _ := resp.(kmsg.ThrottleResponse).Throttle()
			return time.Duration(millis) * time.Millisecond, muted
		}
		// Each takes 50 ms, in which 5 of them come back. For 10 ms she waits 100.
		for i, want := range []time.Duration{0, 0, 400 * time.Millisecond, 850 * time.Millisecond, time.Second} {
			if told, muted := ask("alice"); told != want || muted != want {
				t.Errorf("%T %d: told %s, mute for %s, want %s", req, i, told, muted, want)
			}
		}
		if told, muted := ask("bob"); told+muted != 0 {
			t.Errorf("%T: bob is told %s, and mute for %s", req, told, muted)
		}
	}
	// However long she works, that is forgiven but for eleven seconds' worth.
	s.took = time.Hour
	s.ask("alice", "app", listOffsets())
	s.took, s.now = 0, s.now.Add(12*time.Second)
	if _, _, muted := s.ask("alice", "app", listOffsets()); muted != 0 {
		t.Errorf("12 seconds later she waits %s", muted)
	}
}

// waitingConn has requests wait for an hour.
type waitingConn struct {
	*fakeConn
	s *slow
}

func (c *waitingConn) Park(ctx context.Context, _ int) (context.Context, func(), bool) {
	return &anHour{ctx, c.s}, func() {}, true
}

type anHour struct {
	context.Context
	s *slow
}

func (h *anHour) Done() <-chan struct{} {
	h.s.now = h.s.now.Add(time.Hour)
	over := make(chan struct{})
	close(over)
	return over
}

func TestTheTimeThatRequestsWaitDoesNotCount(t *testing.T) {
	s := newSlow(t)
	s.set("*", "-", metadata.RequestPercentage, 0.001)
	s.took = 0
	if _, _, muted := s.ask("alice", "app", &kmsg.HeartbeatRequest{Version: 4, Group: "g"}); muted != 0 {
		t.Errorf("a coordinator's time counts: %s", muted)
	}
	// A fetch that waits for records; the clock goes on when it does.
	conn := &waitingConn{newFakeConn(), s}
	frame := kmsg.NewRequestFormatter(kmsg.FormatterClientID("app")).AppendRequest(nil, waitingFetch(300_000), 7)[4:]
	if _, err := s.h.Serve(t.Context(), handler.Origin{Listener: "L", Principal: auth.User("alice"), Conn: conn}, frame); err != nil {
		t.Fatal(err)
	}
	assert.Equal(t, conn.muted, 0, "the wait for records counts")
	s.took = time.Second
	for what, origin := range map[string]handler.Origin{
		"a broker": {Listener: "L", Principal: "User:x", Broker: true}, "a login": {Listener: "L", Session: &fakeSession{}},
	} {
		req := kmsg.Request(listOffsets())
		if _, _, muted := s.askFrom(origin, "app", req); muted != 0 {
			t.Errorf("%s has a quota: %s", what, muted)
		}
	}
}
