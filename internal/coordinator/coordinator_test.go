package coordinator

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/journal"
	"muster/internal/machine"
	"muster/internal/metadata"
	"muster/internal/metadata/config"
)

func TestRepliesWaitUntilTheirRecordsAndAllEarlierOnesAreDurable(t *testing.T) {
	log := &gatedLog{held: true}
	inBubble(t, log, func(t *testing.T, c *Coordinator) {
		commit := async(t, c, commitRequest(5))
		read := async(t, c, fetchRequest())
		if answered(commit) || answered(read) {
			t.Error("answered before the commit was durable")
		}
		log.settle(nil)
		synctest.Wait()
		if !answered(commit) || !answered(read) {
			t.Fatal("not answered although the commit is durable")
		}
		if at := fetched(<-read); at != 5 || commitCode(<-commit) != 0 {
			t.Errorf("read offset %d", at)
		}
	})
}

func TestRecordsGatherWhileABatchIsOnItsWay(t *testing.T) {
	log := &gatedLog{held: true}
	inBubble(t, log, func(t *testing.T, c *Coordinator) {
		var all []chan kmsg.Response
		for i := range 20 {
			all = append(all, async(t, c, commitRequest(int64(i))))
		}
		log.settle(nil)
		synctest.Wait()
		log.settle(nil)
		synctest.Wait()
		for i, ch := range all {
			if !answered(ch) {
				t.Errorf("commit %d not answered", i)
			}
		}
		if log.appends != 2 {
			t.Errorf("%d appends for 20 commits", log.appends)
		}
	})
}

func TestAFailedAppendIsToldAndForgotten(t *testing.T) {
	log := &gatedLog{}
	inBubble(t, log, func(t *testing.T, c *Coordinator) {
		if code := commitCode(c.Do(t.Context(), "g", Client{}, commitRequest(3))); code != 0 {
			t.Fatalf("code %d", code)
		}
		log.set(func(l *gatedLog) { l.fail = errors.New("no room") })
		if code := commitCode(c.Do(t.Context(), "g", Client{}, commitRequest(9))); code != kerr.NotCoordinator.Code {
			t.Errorf("code %d", code)
		}
		synctest.Wait()
		if at := fetched(c.Do(t.Context(), "g", Client{}, fetchRequest())); at != 3 {
			t.Errorf("offset %d: the failed commit is remembered", at)
		}
		if code := commitCode(c.Do(t.Context(), "g", Client{}, commitRequest(10))); code != 0 {
			t.Errorf("afterwards: code %d", code)
		}
	})
}

func TestWhileAShardLoadsRequestsAreToldExceptHeartbeats(t *testing.T) {
	log := &gatedLog{slow: time.Second}
	synctest.Test(t, func(t *testing.T) {
		c := New(options(t, log))
		if code := commitCode(c.Do(t.Context(), "g", Client{}, commitRequest(1))); code != kerr.CoordinatorNotAvailable.Code {
			t.Errorf("before there is a topic: code %d", code)
		}
		c.Lead([]int32{0})
		if code := commitCode(c.Do(t.Context(), "g", Client{}, commitRequest(1))); code != kerr.CoordinatorLoadInProgress.Code {
			t.Errorf("code %d", code)
		}
		beat := kmsg.NewPtrHeartbeatRequest()
		beat.Group = "g"
		if code := c.Do(t.Context(), "g", Client{}, beat).(*kmsg.HeartbeatResponse).ErrorCode; code != 0 {
			t.Errorf("heartbeat: code %d", code)
		}
		pass(2 * time.Second)
		if code := commitCode(c.Do(t.Context(), "g", Client{}, commitRequest(1))); code != 0 {
			t.Errorf("after the load: code %d", code)
		}
		c.Close()
	})
}

func joinRequest(memberID string) *kmsg.JoinGroupRequest {
	req := kmsg.NewPtrJoinGroupRequest()
	req.Version, req.Group, req.MemberID = 5, "g", memberID
	req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = 10_000, 60_000
	req.ProtocolType = "consumer"
	req.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range"}}
	return req
}

// becomeMember joins and syncs, alone.
func becomeMember(t *testing.T, c *Coordinator) string {
	t.Helper()
	id := c.Do(t.Context(), "g", Client{ID: "c"}, joinRequest("")).(*kmsg.JoinGroupResponse).MemberID
	joined := c.Do(t.Context(), "g", Client{ID: "c"}, joinRequest(id)).(*kmsg.JoinGroupResponse)
	sync := kmsg.NewPtrSyncGroupRequest()
	sync.Version, sync.Group, sync.Generation, sync.MemberID = 3, "g", joined.Generation, id
	if code := c.Do(t.Context(), "g", Client{ID: "c"}, sync).(*kmsg.SyncGroupResponse).ErrorCode; code != 0 {
		t.Fatalf("sync: code %d", code)
	}
	return id
}

func beatRequest(id string, generation int32) *kmsg.HeartbeatRequest {
	req := kmsg.NewPtrHeartbeatRequest()
	req.Version, req.Group, req.MemberID, req.Generation = 3, "g", id, generation
	return req
}

func TestMembersExpireByTheClockAndHeartbeatsKeepThem(t *testing.T) {
	inBubble(t, &gatedLog{}, func(t *testing.T, c *Coordinator) {
		id := becomeMember(t, c)
		beat := func() int16 {
			return c.Do(t.Context(), "g", Client{}, beatRequest(id, 1)).(*kmsg.HeartbeatResponse).ErrorCode
		}
		for range 5 {
			pass(9 * time.Second)
			if code := beat(); code != 0 {
				t.Fatalf("code %d", code)
			}
		}
		pass(11 * time.Second)
		if code := beat(); code != kerr.UnknownMemberID.Code {
			t.Errorf("after the session timeout: code %d", code)
		}
	})
}

func TestASuccessorKnowsTheMembers(t *testing.T) {
	log := &gatedLog{}
	inBubble(t, log, func(t *testing.T, c *Coordinator) {
		id := becomeMember(t, c)
		c.Close()
		again := New(c.opts)
		again.Lead([]int32{0})
		synctest.Wait()
		if code := again.Do(t.Context(), "g", Client{}, beatRequest(id, 1)).(*kmsg.HeartbeatResponse).ErrorCode; code != 0 {
			t.Errorf("heartbeat in the same generation: code %d", code)
		}
		again.Close()
	})
}

func TestCloseAnswersWhoIsParked(t *testing.T) {
	inBubble(t, &gatedLog{}, func(t *testing.T, c *Coordinator) {
		becomeMember(t, c)
		other := c.Do(t.Context(), "g", Client{ID: "d"}, joinRequest("")).(*kmsg.JoinGroupResponse).MemberID
		parked := async(t, c, joinRequest(other))
		if answered(parked) {
			t.Fatal("a join of a group with another member is answered at once")
		}
		c.Close()
		if code := (<-parked).(*kmsg.JoinGroupResponse).ErrorCode; code != kerr.NotCoordinator.Code {
			t.Errorf("code %d", code)
		}
	})
}

// A successor of a shard reads what this one wrote, so nothing may come after.
func TestTheEndWaitsForAnAppendThatBegins(t *testing.T) {
	log := &gatedLog{}
	inBubble(t, log, func(t *testing.T, c *Coordinator) {
		log.stuck = make(chan struct{})
		commit := async(t, c, commitRequest(5))
		ended := make(chan struct{})
		go func() {
			c.Close()
			close(ended)
		}()
		synctest.Wait()
		select {
		case <-ended:
			t.Error("closed while an append begins")
		default:
		}
		close(log.stuck)
		<-ended
		if log.appends != 1 || log.givenUp != nil {
			t.Errorf("%d appends, given up: %v", log.appends, log.givenUp)
		}
		if code := commitCode(<-commit); code != kerr.NotCoordinator.Code {
			t.Errorf("code %d", code)
		}
	})
}

func TestWhatHappensDuringALoadIsHandledAfterIt(t *testing.T) {
	log := &gatedLog{}
	inBubble(t, log, func(t *testing.T, c *Coordinator) {
		if code := commitCode(c.Do(t.Context(), "g", Client{}, commitRequest(3))); code != 0 {
			t.Fatalf("code %d", code)
		}
		c.Close()
		log.slow = time.Second
		again := New(c.opts)
		again.Lead([]int32{0})
		log.change(again, imageOf(1), imageOf(0))
		pass(3 * time.Second)
		if at := fetched(again.Do(t.Context(), "g", Client{}, fetchRequest())); at != -1 {
			t.Errorf("offset %d of a topic that was deleted during the load", at)
		}
		again.Close()
	})
}

// The metadata may change at the last moment of a load. Whoever tells of it finds
// a shard that is loading, which must not go by what it saw before.
func TestATopicThatGoesAtTheEndOfALoadIsNoticed(t *testing.T) {
	log := &gatedLog{}
	inBubble(t, log, func(t *testing.T, c *Coordinator) {
		log.image.Store(imageOf(1))
		if code := commitCode(c.Do(t.Context(), "g", Client{}, commitRequest(3))); code != 0 {
			t.Fatalf("code %d", code)
		}
		c.Close()
		again := New(c.opts)
		atLast := func() { log.change(again, imageOf(1), imageOf(0)) }
		log.asked.Store(&atLast)
		again.Lead([]int32{0})
		synctest.Wait()
		if at := fetched(again.Do(t.Context(), "g", Client{}, fetchRequest())); at != -1 {
			t.Errorf("offset %d of a topic that was deleted at the end of the load", at)
		}
		again.Close()
	})
}

// What a shard was appending when another one took its place may arrive after
// that one has begun to read, unless the log is opened again before.
func TestAShardThatReplacesAnotherOpensTheLogAgain(t *testing.T) {
	log := &gatedLog{}
	inBubble(t, log, func(_ *testing.T, c *Coordinator) {
		before := log.reopens
		c.Lead([]int32{1})
		synctest.Wait()
		if log.reopens != before+1 {
			t.Errorf("the log was opened %d times", log.reopens-before)
		}
	})
}

// A coordinator that knows by the newest metadata that another one has taken
// over accepts nothing, also before it has been told to stop.
func TestWhoeverIsNotTheLeaderAnyMoreAcceptsNothing(t *testing.T) {
	log, leads := &gatedLog{}, atomic.Int32{}
	leads.Store(4)
	opts := options(t, log)
	opts.Leads = func(partition, epoch int32) bool { return partition == 0 && epoch == leads.Load() }
	synctest.Test(t, func(t *testing.T) {
		c := New(opts)
		defer c.Close()
		c.Lead([]int32{4})
		synctest.Wait()
		if code := commitCode(c.Do(t.Context(), "g", Client{}, commitRequest(1))); code != 0 {
			t.Errorf("code %d", code)
		}
		leads.Store(5)
		if code := commitCode(c.Do(t.Context(), "g", Client{}, commitRequest(2))); code != kerr.NotCoordinator.Code {
			t.Errorf("code %d from who is not the leader any more", code)
		}
	})
}

// imageOf is metadata with topic t of that id, without any for 0.
func imageOf(id byte) *metadata.Image {
	edit := metadata.NewImage(&config.Broker{}).Edit()
	if id != 0 {
		edit.PutTopic(metadata.Topic{Name: "t", ID: metadata.TopicID{15: id}})
	}
	return edit.Image()
}

// change publishes an image and tells a coordinator of it.
func (l *gatedLog) change(c *Coordinator, before, after *metadata.Image) {
	l.image.Store(after)
	c.Changed(before, after, []string{"t"})
}

func TestOffsetsOfADeletedTopicGo(t *testing.T) {
	for name, after := range map[string]byte{"deleted": 0, "created again": 2} {
		log := &gatedLog{}
		inBubble(t, log, func(t *testing.T, c *Coordinator) {
			log.change(c, imageOf(0), imageOf(1))
			c.Do(t.Context(), "g", Client{}, commitRequest(3))
			log.change(c, imageOf(1), imageOf(1))
			if at := fetched(c.Do(t.Context(), "g", Client{}, fetchRequest())); at != 3 {
				t.Errorf("offset %d, though the topic is still there", at)
			}
			log.change(c, imageOf(1), imageOf(after))
			synctest.Wait()
			if at := fetched(c.Do(t.Context(), "g", Client{}, fetchRequest())); at != -1 {
				t.Errorf("offset %d of a topic that is %s", at, name)
			}
		})
	}
}

// An append whose outcome no one heard of may be in the log. What is answered
// after it must not depend on whether the coordinator has been restarted since.
func TestAReloadReadsToTheTrueEndOfTheLog(t *testing.T) {
	log := &gatedLog{}
	inBubble(t, log, func(t *testing.T, c *Coordinator) {
		c.Do(t.Context(), "g", Client{}, commitRequest(3))
		log.set(func(l *gatedLog) { l.held, l.lost = true, true })
		commit := async(t, c, commitRequest(9))
		log.settle(errors.New("no answer"))
		synctest.Wait()
		if code := commitCode(<-commit); code != kerr.NotCoordinator.Code {
			t.Errorf("code %d", code)
		}
		if at := fetched(c.Do(t.Context(), "g", Client{}, fetchRequest())); at != 9 {
			t.Errorf("offset %d, though 9 is in the log", at)
		}
		if log.reopens != 2 {
			t.Errorf("the log was opened %d times for two loads", log.reopens)
		}
	})
}

func TestANewLeaderEpochEndsTheOldShardAndLoadsAnother(t *testing.T) {
	log := &gatedLog{}
	inBubble(t, log, func(t *testing.T, c *Coordinator) {
		becomeMember(t, c)
		other := c.Do(t.Context(), "g", Client{ID: "d"}, joinRequest("")).(*kmsg.JoinGroupResponse).MemberID
		parked := async(t, c, joinRequest(other))
		old := (*c.shards.Load())[0]
		c.Lead([]int32{1})
		if code := (<-parked).(*kmsg.JoinGroupResponse).ErrorCode; code != kerr.NotCoordinator.Code {
			t.Errorf("who was parked: code %d", code)
		}
		if old.pump.Active() || old.pump.Loading() {
			t.Error("the old shard lives on")
		}
		pass(time.Hour) // Its timers would have expired its members by now.
		synctest.Wait()
		if again := (*c.shards.Load())[0]; again == old || !again.pump.Active() {
			t.Error("no new shard")
		}
		if old.wake != nil && old.wake.Stop() {
			t.Error("the old shard's clock is set")
		}
		c.Lead([]int32{NotLed})
		if code := commitCode(c.Do(t.Context(), "g", Client{}, commitRequest(1))); code != kerr.NotCoordinator.Code {
			t.Errorf("of a shard that another broker leads: code %d", code)
		}
	})
}

func TestTheSameLeaderEpochLeavesTheShardAlone(t *testing.T) {
	inBubble(t, &gatedLog{}, func(t *testing.T, c *Coordinator) {
		old := (*c.shards.Load())[0]
		c.Lead([]int32{0})
		if (*c.shards.Load())[0] != old || !old.pump.Active() {
			t.Error("the shard was begun anew")
		}
	})
}

func TestNotesAreToldOnceRecordsAreDurable(t *testing.T) {
	log := &gatedLog{}
	var told []*journal.Entry
	synctest.Test(t, func(t *testing.T) {
		opts := options(t, log)
		opts.Notes = func(_ int32, n []machine.Note) { told = append(told, machine.NotesOf[*journal.Entry](n)...) }
		c := New(opts)
		c.Lead([]int32{0})
		synctest.Wait()
		id := c.Do(t.Context(), "g", Client{ID: "c"}, joinRequest("")).(*kmsg.JoinGroupResponse).MemberID
		joined := c.Do(t.Context(), "g", Client{ID: "c"}, joinRequest(id)).(*kmsg.JoinGroupResponse)
		if len(told) != 1 || told[0].Kind != journal.KindStarted {
			t.Fatalf("after the join: %+v", told)
		}
		log.set(func(l *gatedLog) { l.held = true })
		sync := kmsg.NewPtrSyncGroupRequest()
		sync.Version, sync.Group, sync.Generation, sync.MemberID = 3, "g", joined.Generation, id
		synced := async(t, c, sync)
		if len(told) != 1 {
			t.Errorf("told before it is durable: %+v", told[1:])
		}
		log.settle(nil)
		<-synced
		if len(told) != 2 || told[1].Kind != journal.KindSettled {
			t.Errorf("after the sync: %+v", told)
		}
		c.Close()
	})
}

// What is told takes as long as it takes: others are answered meanwhile. Who caused it
// is answered after it was told.
func TestRequestsAreAnsweredWhileNotesAreTold(t *testing.T) {
	log := &gatedLog{}
	synctest.Test(t, func(t *testing.T) {
		opts, telling := options(t, log), make(chan struct{})
		opts.Notes = func(_ int32, n []machine.Note) {
			if machine.NotesOf[*journal.Entry](n)[0].Kind == journal.KindSettled {
				<-telling
			}
		}
		c := New(opts)
		c.Lead([]int32{0})
		synctest.Wait()
		id := c.Do(t.Context(), "g", Client{ID: "c"}, joinRequest("")).(*kmsg.JoinGroupResponse).MemberID
		joined := c.Do(t.Context(), "g", Client{ID: "c"}, joinRequest(id)).(*kmsg.JoinGroupResponse)
		log.set(func(l *gatedLog) { l.held = true })
		sync := kmsg.NewPtrSyncGroupRequest()
		sync.Version, sync.Group, sync.Generation, sync.MemberID = 3, "g", joined.Generation, id
		synced := async(t, c, sync)
		go log.settle(nil)
		synctest.Wait()
		beat := kmsg.NewPtrHeartbeatRequest()
		beat.Version, beat.Group, beat.Generation, beat.MemberID = 4, "g", joined.Generation, id
		if other := async(t, c, beat); !answered(other) || answered(synced) {
			t.Errorf("while notes are told a heartbeat is answered: %t, who caused them: %t", answered(other), answered(synced))
		}
		close(telling)
		<-synced
		c.Close()
	})
}

// A client that is gone leaves nothing behind that would keep its request.
func TestAClientThatGoesAwayIsForgotten(t *testing.T) {
	inBubble(t, &gatedLog{}, func(t *testing.T, c *Coordinator) {
		becomeMember(t, c)
		other := c.Do(t.Context(), "g", Client{ID: "d"}, joinRequest("")).(*kmsg.JoinGroupResponse).MemberID
		ctx, cancel := context.WithCancel(t.Context())
		answered := make(chan kmsg.Response, 1)
		go func() { answered <- c.Do(ctx, "g", Client{ID: "d"}, joinRequest(other)) }()
		synctest.Wait()
		s := (*c.shards.Load())[0]
		if len(s.waiting) != 1 {
			t.Fatalf("%d requests wait", len(s.waiting))
		}
		cancel()
		if code := (<-answered).(*kmsg.JoinGroupResponse).ErrorCode; code != kerr.NotCoordinator.Code {
			t.Errorf("code %d", code)
		}
		if len(s.waiting) != 0 {
			t.Errorf("%d requests wait", len(s.waiting))
		}
	})
}

// One group that is too large does not trouble the others of its shard.
func TestAnAssignmentThatIsTooLargeFailsItsGroupAlone(t *testing.T) {
	log := &gatedLog{max: 500}
	inBubble(t, log, func(t *testing.T, c *Coordinator) {
		other := c.Do(t.Context(), "g", Client{ID: "c"}, joinRequest("")).(*kmsg.JoinGroupResponse).MemberID
		joined := c.Do(t.Context(), "g", Client{ID: "c"}, joinRequest(other)).(*kmsg.JoinGroupResponse)
		join := joinRequest("")
		join.Group = "h"
		join.MemberID = c.Do(t.Context(), "g", Client{ID: "d"}, join).(*kmsg.JoinGroupResponse).MemberID
		waiting := async(t, c, join)
		sync := kmsg.NewPtrSyncGroupRequest()
		sync.Version, sync.Group, sync.Generation, sync.MemberID = 3, "g", joined.Generation, other
		sync.GroupAssignment = []kmsg.SyncGroupRequestGroupAssignment{{MemberID: other, MemberAssignment: make([]byte, 1000)}}
		if code := c.Do(t.Context(), "g", Client{ID: "c"}, sync).(*kmsg.SyncGroupResponse).ErrorCode; code != kerr.UnknownServerError.Code {
			t.Errorf("code %d", code)
		}
		if code := (<-waiting).(*kmsg.JoinGroupResponse).ErrorCode; code != 0 {
			t.Errorf("the other group: code %d", code)
		}
		if log.reopens > 1 {
			t.Error("the shard was loaded again")
		}
	})
}
