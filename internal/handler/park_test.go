package handler_test

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
)

// fakeConn is a connection whose client hangs up when a test says so.
type fakeConn struct {
	full     bool // nothing more may wait
	limit    int  // of what may be held; zero for none
	held     int
	released bool
	muted    time.Duration // in all
	parked   chan int      // receives how much each request keeps that waits
	hangUp   chan struct{}
	over     chan struct{} // receives when a wait is over
	place    any
}

func newFakeConn() *fakeConn {
	return &fakeConn{parked: make(chan int, 10), hangUp: make(chan struct{}), over: make(chan struct{}, 10)}
}

func (c *fakeConn) Hold(n int) bool {
	c.held += n
	return c.limit == 0 || c.held <= c.limit
}

func (c *fakeConn) Release() { c.released = true }

func (c *fakeConn) Place() *any { return &c.place }

func (c *fakeConn) Mute(d time.Duration) { c.muted += d }

func (c *fakeConn) Park(ctx context.Context, n int) (context.Context, func(), bool) {
	c.parked <- n
	if c.full {
		return nil, nil, false
	}
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-c.hangUp:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(); c.over <- struct{}{} }, true
}

// waitingFetch asks for more than there is.
func waitingFetch(maxWait int32) *kmsg.FetchRequest {
	req := kmsg.NewPtrFetchRequest()
	req.Version, req.MaxBytes, req.MinBytes, req.MaxWaitMillis, req.SessionEpoch = 12, 1<<20, 1, maxWait, -1
	topic := kmsg.NewFetchRequestTopic()
	topic.Topic = "t"
	topic.Partitions = append(topic.Partitions, kmsg.NewFetchRequestTopicPartition())
	req.Topics = append(req.Topics, topic)
	return req
}

func join(group, member string, metadata []byte) *kmsg.JoinGroupRequest {
	req := kmsg.NewPtrJoinGroupRequest()
	req.Version, req.Group, req.MemberID, req.ProtocolType = 3, group, member, "consumer"
	req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = 10_000, 600_000
	p := kmsg.NewJoinGroupRequestProtocol()
	p.Name, p.Metadata = "range", metadata
	req.Protocols = append(req.Protocols, p)
	return req
}

func TestAFetchThatWaitsEndsWithItsClient(t *testing.T) {
	w := newWorld(t)
	w.conn = newFakeConn()
	go func() {
		<-w.conn.parked
		close(w.conn.hangUp)
	}()
	w.request(waitingFetch(math.MaxInt32))
	<-w.conn.over
	assert.True(t, w.conn.released, "the frame was kept while the fetch waited")
}

func TestAFetchWithoutRoomToWaitIsAnsweredAtOnce(t *testing.T) {
	w := newWorld(t)
	w.conn = newFakeConn()
	w.conn.full = true
	resp := w.request(waitingFetch(math.MaxInt32)).(*kmsg.FetchResponse)
	if p := resp.Topics[0].Partitions[0]; p.ErrorCode != 0 || p.HighWatermark != 0 {
		t.Errorf("got %+v", p)
	}
}

func TestAFetchThatNeedNotWaitIsNotParked(t *testing.T) {
	w := newWorld(t)
	w.request(w.produceRequest(9, 0))
	w.conn = newFakeConn()
	w.request(waitingFetch(math.MaxInt32))
	assert.True(t, len(w.conn.parked) == 0, "a fetch with an answer was parked")
}

func TestNoFetchWaitsForLongerThanMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		began := time.Now()
		w.request(waitingFetch(math.MaxInt32))
		assert.Equal(t, time.Since(began), 5*time.Minute, "it waited for")
		w.close()
	})
}

func TestAJoinGroupThatWaitsEndsWithItsClient(t *testing.T) {
	w := newWorld(t)
	first := w.request(join("g", "", nil)).(*kmsg.JoinGroupResponse)
	assert.MustEqual(t, first.ErrorCode, 0, "the first member: error code")
	w.conn = newFakeConn()
	go func() {
		if size := <-w.conn.parked; size < 50_000 {
			t.Errorf("a request of 50,000 bytes waits with %d", size)
		}
		close(w.conn.hangUp)
	}()
	// The first member does not join again.
	assert.True(t, w.request(join("g", "", make([]byte, 50_000))).(*kmsg.JoinGroupResponse).ErrorCode != 0, "the member got into the group")
	<-w.conn.over
}

func TestAJoinGroupWithoutRoomToWaitMayTryAgain(t *testing.T) {
	w := newWorld(t)
	w.conn = newFakeConn()
	w.conn.full = true
	resp := w.request(join("g", "", nil)).(*kmsg.JoinGroupResponse)
	assert.Equal(t, resp.ErrorCode, kerr.CoordinatorNotAvailable.Code, "error code")
}
