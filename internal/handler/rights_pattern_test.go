package handler_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
	"muster/internal/auth"
	"muster/internal/coordinator"
	"muster/internal/handler"
	"muster/internal/metadata"
)

// Anybody who may use a group could learn the ids and the numbers of partitions of all
// topics by a pattern.
func TestAPatternFindsOnlyTopicsThatTheMemberMaySee(t *testing.T) {
	w := newGuardedWorld(t)
	for _, name := range []string{"seen", "seen-elsewhere", "hidden"} {
		if _, errs := w.c.CreateTopics(t.Context(), []metadata.NewTopic{{Name: name, Partitions: 1, Replication: 1}}, false); errs[0] != nil {
			t.Fatal(errs[0])
		}
	}
	w.may(alice, auth.Read, auth.Group, "g")
	here := rule(alice, auth.Allow, auth.Read, auth.Topic, "seen")
	elsewhere := rule(alice, auth.Allow, auth.Read, auth.Topic, "seen-elsewhere")
	here.Host, elsewhere.Host = "::1", "::2"
	w.allow(here, elsewhere)

	pattern := ".*"
	beat := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	beat.Version, beat.Group, beat.MemberID, beat.RebalanceTimeoutMillis = 1, "g", "m", 1000
	beat.SubscribedTopicRegex, beat.Topics = &pattern, []kmsg.ConsumerGroupHeartbeatRequestTopic{}
	origin := handler.Origin{Listener: "L", Host: "0:0:0:0:0:0:0:1", Principal: alice}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for ; ctx.Err() == nil; runtime.Gosched() {
		got := w.from(origin, beat).(*kmsg.ConsumerGroupHeartbeatResponse)
		assert.MustEqual(t, got.ErrorCode, 0, "%+v", got)
		beat.MemberEpoch = got.MemberEpoch
		if got.Assignment != nil && len(got.Assignment.Topics) > 0 {
			if len(got.Assignment.Topics) > 1 || got.Assignment.Topics[0].TopicID != w.c.Image().Topic("seen").ID {
				t.Errorf("the member is given %+v, want the topic it may see", got.Assignment.Topics)
			}
			return
		}
	}
	t.Error("the member is given nothing")
}

// askers notes who asks a coordinator.
type askers struct {
	handler.Coordinator
	seen []metadata.Asker
}

func (a *askers) Do(ctx context.Context, id string, from coordinator.Client, req kmsg.Request) kmsg.Response {
	a.seen = append(a.seen, from.Asker)
	return a.Coordinator.Do(ctx, id, from, req)
}

// Each of these requests may have a group look at its topics.
func TestACoordinatorOfGroupsIsToldWhoAsks(t *testing.T) {
	w := newGuardedWorld(t)
	w.may(alice, auth.Read, auth.Group, "g")
	groups := &askers{Coordinator: w.groups}
	w.opts.Groups = groups
	w.h = handler.New(w.opts)
	join := &kmsg.JoinGroupRequest{Group: "g", SessionTimeoutMillis: 10_000, ProtocolType: "consumer"}
	for _, req := range []kmsg.Request{join, &kmsg.HeartbeatRequest{Group: "g"}, &kmsg.ConsumerGroupHeartbeatRequest{Group: "g"}} {
		groups.seen = nil
		w.as(alice, req)
		if want := (metadata.Asker{Principal: alice, Host: "127.0.0.1"}); len(groups.seen) != 1 || groups.seen[0] != want {
			t.Errorf("%s comes from %+v", kmsg.NameForKey(req.Key()), groups.seen)
		}
	}
}
