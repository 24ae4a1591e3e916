package handler_test

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
	"muster/internal/handler"
	"muster/internal/machine"
	"muster/internal/metadata"
	"muster/internal/share/leader"
	shared "muster/internal/share/session"
	"muster/internal/share/state"
	"muster/internal/share/window"
)

// shareWorld is a handler with share groups, over the core of the share coordinator.
type shareWorld struct {
	*world
	mu    sync.Mutex
	gate  atomic.Pointer[chan struct{}] // not nil: requests to the share coordinator wait for it
	shard *state.Shard
	set   leader.Settings
	epoch map[string]int32 // that the session of a member is at
}

func newShareWorld(t testing.TB) *shareWorld {
	t.Helper()
	w := &shareWorld{world: newWorld(t), shard: state.NewShard(state.DefaultConfig()), epoch: map[string]int32{}}
	w.set = leader.Settings{Settings: window.Settings{Lock: time.Hour, Limit: 5, Window: 2000, Renew: true}, Reset: leader.Reset{Kind: leader.Earliest}}
	w.share(2000)
	w.step(w.initialization("g", 0, 1))
	return w
}

// share has the handler serve share groups, with so many sessions.
func (w *shareWorld) share(sessions int) {
	w.serveShares(sessions, w.ask, func(string) leader.Settings { return w.set })
}

// serveShares has the handler serve share groups.
func (w *world) serveShares(sessions int, ask func(context.Context, leader.Key, kmsg.Request) (kmsg.Response, error), settings func(string) leader.Settings) {
	s := shared.New(sessions)
	l := leader.New(leader.Options{Ask: ask, Settings: settings, InUse: func(group string) bool {
		if w.leaving != nil {
			w.leaving()
		}
		return s.Has(group)
	}, Logger: slog.New(slog.DiscardHandler)})
	w.t.Cleanup(l.Close)
	w.opts.Shares = &handler.Shares{Leader: l, Sessions: s, Settings: settings}
	w.h = handler.New(w.opts)
}

func (w *shareWorld) ask(_ context.Context, _ leader.Key, req kmsg.Request) (kmsg.Response, error) {
	if gate := w.gate.Load(); gate != nil {
		<-*gate
	}
	return w.step(req), nil
}

func (w *shareWorld) step(req kmsg.Request) kmsg.Response {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.shard.Step(machine.Input{Now: time.Now(), Image: w.c.Image(), MaxBatch: 1 << 20, Event: machine.Request{ID: 1, Msg: req}}).Replies[0].Msg
}

func (w *shareWorld) id() metadata.TopicID { return w.c.Image().Topic("t").ID }

// initialization is the request of a group coordinator for partitions of the topic t.
func (w *shareWorld) initialization(group string, parts ...int32) kmsg.Request {
	req := kmsg.NewPtrInitializeShareGroupStateRequest()
	req.GroupID = group
	topic := kmsg.NewInitializeShareGroupStateRequestTopic()
	topic.TopicID = w.id()
	for _, index := range parts {
		p := kmsg.NewInitializeShareGroupStateRequestTopicPartition()
		p.Partition, p.StateEpoch, p.StartOffset = index, 1, -1
		topic.Partitions = append(topic.Partitions, p)
	}
	req.Topics = append(req.Topics, topic)
	return req
}

// fetchOf is the next request of a member of g, about partitions of the topic t.
func (w *shareWorld) fetchOf(member string, parts ...int32) *kmsg.ShareFetchRequest {
	req := kmsg.NewPtrShareFetchRequest()
	group := "g"
	req.Version, req.GroupID, req.MemberID, req.ShareSessionEpoch = 2, &group, &member, w.epoch[member]
	req.MaxWaitMillis, req.MinBytes, req.MaxBytes, req.MaxRecords, req.BatchSize = 5000, 1, 1<<20, 500, 500
	topic := kmsg.NewShareFetchRequestTopic()
	topic.TopicID = w.id()
	for _, index := range parts {
		p := kmsg.NewShareFetchRequestTopicPartition()
		p.Partition = index
		topic.Partitions = append(topic.Partitions, p)
	}
	if len(parts) > 0 {
		req.Topics = append(req.Topics, topic)
	}
	w.epoch[member]++
	return req
}

// fetches sends a request that must succeed, and returns its partitions.
func (w *shareWorld) fetches(origin handler.Origin, req *kmsg.ShareFetchRequest) []kmsg.ShareFetchResponseTopicPartition {
	w.t.Helper()
	resp := w.from(origin, req).(*kmsg.ShareFetchResponse)
	assert.MustEqual(w.t, resp.ErrorCode, 0, "ShareFetch")
	var out []kmsg.ShareFetchResponseTopicPartition
	for _, t := range resp.Topics {
		out = append(out, t.Partitions...)
	}
	return out
}

// refusal is the error of a whole request.
func (w *shareWorld) refusal(req kmsg.Request) error {
	w.t.Helper()
	switch resp := w.from(handler.Origin{Listener: "L", Conn: newFakeConn()}, req).(type) {
	case *kmsg.ShareFetchResponse:
		return kerr.ErrorForCode(resp.ErrorCode)
	case *kmsg.ShareAcknowledgeResponse:
		return kerr.ErrorForCode(resp.ErrorCode)
	}
	return nil
}

// aConn is a connection of a client.
func aConn() handler.Origin {
	return handler.Origin{Listener: "L", Host: "127.0.0.1", Conn: newFakeConn()}
}

// hangUp ends a connection.
func hangUp(o handler.Origin) { (*o.Conn.Place()).(interface{ Ended() }).Ended() }

func ackBatch(first, last int64, types ...int8) []kmsg.ShareFetchRequestTopicPartitionAcknowledgementBatch {
	b := kmsg.NewShareFetchRequestTopicPartitionAcknowledgementBatch()
	b.FirstOffset, b.LastOffset, b.AcknowledgeTypes = first, last, types
	return []kmsg.ShareFetchRequestTopicPartitionAcknowledgementBatch{b}
}

// acknowledgement is the next request of a member with one range of partition 0.
func (w *shareWorld) acknowledgement(member string, first, last int64, types ...int8) *kmsg.ShareAcknowledgeRequest {
	req := kmsg.NewPtrShareAcknowledgeRequest()
	group := "g"
	req.Version, req.GroupID, req.MemberID, req.ShareSessionEpoch = 2, &group, &member, w.epoch[member]
	topic, p, b := kmsg.NewShareAcknowledgeRequestTopic(), kmsg.NewShareAcknowledgeRequestTopicPartition(), kmsg.NewShareAcknowledgeRequestTopicPartitionAcknowledgementBatch()
	b.FirstOffset, b.LastOffset, b.AcknowledgeTypes = first, last, types
	p.AcknowledgementBatches = append(p.AcknowledgementBatches, b)
	topic.TopicID, topic.Partitions = w.id(), append(topic.Partitions, p)
	req.Topics = append(req.Topics, topic)
	w.epoch[member]++
	return req
}

func TestAMemberFetchesAcknowledgesAndGoesOn(t *testing.T) {
	w := newShareWorld(t)
	w.request(w.produceRequest(9, 0))
	o := aConn()
	got := w.fetches(o, w.fetchOf("m", 0))
	assert.MustTrue(t, len(got) == 1 && len(got[0].AcquiredRecords) == 1 && len(got[0].Records) > 0, "%+v", got)
	assert.True(t, got[0].AcquiredRecords[0].LastOffset == 2 && got[0].AcquiredRecords[0].DeliveryCount == 1, "%+v", got[0].AcquiredRecords)
	ack := w.from(o, w.acknowledgement("m", 0, 2, window.Accept)).(*kmsg.ShareAcknowledgeResponse)
	assert.MustTrue(t, ack.ErrorCode == 0 && len(ack.Topics) == 1 && ack.Topics[0].Partitions[0].ErrorCode == 0, "%+v", ack)
	assert.Equal(t, ack.AcquisitionLockTimeoutMillis, 3_600_000, "")
	w.request(w.produceRequest(9, 0))
	got = w.fetches(o, w.fetchOf("m"))
	assert.MustTrue(t, len(got) == 1 && got[0].AcquiredRecords[0].FirstOffset == 3, "%+v", got)
	// What it says with the next fetch is answered there, with records or not.
	w.request(w.produceRequest(9, 0))
	req := w.fetchOf("m", 0)
	req.Topics[0].Partitions[0].AcknowledgementBatches = ackBatch(3, 5, window.Accept, window.Reject, window.Gap)
	got = w.fetches(o, req)
	assert.MustTrue(t, got[0].AcknowledgeErrorCode == 0 && got[0].AcquiredRecords[0].FirstOffset == 6, "%+v", got)
	req = w.fetchOf("m", 0)
	req.MaxWaitMillis = 0
	req.Topics[0].Partitions[0].AcknowledgementBatches = ackBatch(3, 5, window.Accept)
	got = w.fetches(o, req)
	assert.MustTrue(t, len(got) == 1 && got[0].AcknowledgeErrorCode == 0, "of what is below the start: %+v", got)
	req = w.fetchOf("m", 0)
	req.MaxWaitMillis = 0
	req.Topics[0].Partitions[0].AcknowledgementBatches = ackBatch(7, 9, window.Accept)
	got = w.fetches(o, req)
	assert.MustEqual(t, got[0].AcknowledgeErrorCode, kerr.InvalidRequest.Code, "of what was not acquired")
}

func TestAFetchWaitsForRecords(t *testing.T) {
	w := newShareWorld(t)
	w.request(w.produceRequest(9, 0))
	o, other := aConn(), aConn()
	w.fetches(o, w.fetchOf("m", 0))
	done := make(chan []kmsg.ShareFetchResponseTopicPartition)
	first := w.fetchOf("n", 0)
	first.MaxWaitMillis = 0
	w.fetches(other, first)
	second := w.fetchOf("n")
	second.MaxWaitMillis = 60_000
	go func() { done <- w.fetches(other, second) }()
	<-other.Conn.(*fakeConn).parked
	hangUp(o) // The records of m are released, which n waits for.
	got := <-done
	assert.MustTrue(t, len(got) == 1 && got[0].AcquiredRecords[0].DeliveryCount == 2, "%+v", got)
	third := w.fetchOf("n")
	third.MaxWaitMillis = 60_000
	go func() { done <- w.fetches(other, third) }()
	<-other.Conn.(*fakeConn).parked
	w.request(w.produceRequest(9, 0))
	got = <-done
	assert.MustTrue(t, len(got) == 1 && got[0].AcquiredRecords[0].FirstOffset == 3, "%+v", got)
}

func TestAConnectionThatASessionHasLeftReleasesNothing(t *testing.T) {
	w := newShareWorld(t)
	w.request(w.produceRequest(9, 0))
	old, now := aConn(), aConn()
	w.fetches(old, w.fetchOf("m", 0))
	w.epoch["m"] = 0
	req := w.fetchOf("m", 0) // It begins anew elsewhere, and keeps its records.
	req.MaxWaitMillis = 0
	w.fetches(now, req)
	hangUp(old)
	ack := w.from(now, w.acknowledgement("m", 0, 2, window.Accept)).(*kmsg.ShareAcknowledgeResponse)
	assert.Equal(t, ack.Topics[0].Partitions[0].ErrorCode, 0, "")
}

func TestASessionThatBeginsWhileThoseOfAConnectionEndKeepsItsRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newShareWorld(t)
		w.request(w.produceRequest(9, 0))
		old, now := aConn(), aConn()
		w.fetches(old, w.fetchOf("b", 0))
		w.epoch["a"] = 0
		idle := w.fetchOf("a", 0)
		idle.MaxWaitMillis = 0
		w.fetches(old, idle)
		synctest.Wait()      // Whatever is loaded tells that it is.
		w.leaving = func() { // The records of a are being released.
			w.leaving = nil
			w.epoch["b"] = 0
			req := w.fetchOf("b", 0)
			req.MaxWaitMillis = 0
			w.fetches(now, req)
		}
		hangUp(old)
		ack := w.from(now, w.acknowledgement("b", 0, 2, window.Accept)).(*kmsg.ShareAcknowledgeResponse)
		assert.Equal(t, ack.Topics[0].Partitions[0].ErrorCode, 0, "")
	})
}

func TestANewSessionFindsTheOffsetsToWhichItsGroupWasAltered(t *testing.T) {
	w := newShareWorld(t)
	w.request(w.produceRequest(9, 0))
	o := aConn()
	w.fetches(o, w.fetchOf("m", 0))
	w.from(o, w.acknowledgement("m", 0, 2, window.Accept))
	altered := w.initialization("g", 0).(*kmsg.InitializeShareGroupStateRequest)
	altered.Topics[0].Partitions[0].StateEpoch, altered.Topics[0].Partitions[0].StartOffset = 2, 1
	w.step(altered)
	got := w.fetches(aConn(), w.fetchOf("n", 0))
	assert.MustTrue(t, len(got) == 1 && len(got[0].AcquiredRecords) == 1 && got[0].AcquiredRecords[0].FirstOffset == 1, "%+v", got)
}

func TestPartitionsThatAnAcknowledgementSaysNothingOfAreAnsweredToo(t *testing.T) {
	w := newShareWorld(t)
	o := aConn()
	first := w.fetchOf("m", 0)
	first.MaxWaitMillis = 0
	w.fetches(o, first)
	req := w.acknowledgement("m", 0, 0)
	req.Topics[0].Partitions[0].AcknowledgementBatches = nil
	other := req.Topics[0].Partitions[0]
	other.Partition = 9
	req.Topics[0].Partitions = append(req.Topics[0].Partitions, other)
	ack := w.from(o, req).(*kmsg.ShareAcknowledgeResponse)
	assert.MustTrue(t, len(ack.Topics) == 1 && len(ack.Topics[0].Partitions) == 2, "%+v", ack)
	got := ack.Topics[0].Partitions
	assert.True(t, got[0].ErrorCode == 0 && got[1].ErrorCode == kerr.UnknownTopicOrPartition.Code, "%+v", got)
}

func TestTheLastRequestOfASessionReleases(t *testing.T) {
	for _, how := range []string{"fetch", "acknowledge"} {
		w := newShareWorld(t)
		w.request(w.produceRequest(9, 0))
		o := aConn()
		w.fetches(o, w.fetchOf("m", 0))
		w.epoch["m"] = -1
		if how == "fetch" {
			req := w.fetchOf("m", 0)
			req.Topics[0].Partitions[0].AcknowledgementBatches = ackBatch(0, 0, window.Accept)
			got := w.fetches(o, req)
			assert.MustTrue(t, len(got) == 1 && got[0].AcknowledgeErrorCode == 0 && len(got[0].Records) == 0, "%+v", got)
		} else {
			ack := w.from(o, w.acknowledgement("m", 0, 0, window.Accept)).(*kmsg.ShareAcknowledgeResponse)
			assert.MustEqual(t, ack.Topics[0].Partitions[0].ErrorCode, 0, "")
		}
		got := w.fetches(aConn(), w.fetchOf("n", 0))
		assert.MustTrue(t, len(got) == 1 && len(got[0].AcquiredRecords) == 1 && got[0].AcquiredRecords[0].FirstOffset == 1 && got[0].AcquiredRecords[0].DeliveryCount == 2, "%s: %+v", how, got)
		w.epoch["m"] = 1
		assert.ErrorIs(t, w.refusal(w.fetchOf("m")), kerr.ShareSessionNotFound)
	}
}

func TestRequestsOfShareGroupsThatAreRefused(t *testing.T) {
	w := newShareWorld(t)
	fetch := func(change func(*kmsg.ShareFetchRequest)) kmsg.Request {
		w.epoch["m"] = 0
		req := w.fetchOf("m", 0)
		req.MaxWaitMillis = 0
		change(req)
		return req
	}
	empty, long := "", "1234567890123456789012345678901234567"
	for _, tt := range []struct {
		name string
		req  kmsg.Request
		want *kerr.Error
	}{
		{"no group", fetch(func(r *kmsg.ShareFetchRequest) { r.GroupID = nil }), kerr.InvalidRequest},
		{"an empty group", fetch(func(r *kmsg.ShareFetchRequest) { r.GroupID = &empty }), kerr.InvalidRequest},
		{"no member", fetch(func(r *kmsg.ShareFetchRequest) { r.MemberID = nil }), kerr.InvalidRequest},
		{"a long member", fetch(func(r *kmsg.ShareFetchRequest) { r.MemberID = &long }), kerr.InvalidRequest},
		{"no session", fetch(func(r *kmsg.ShareFetchRequest) { r.ShareSessionEpoch = 1 }), kerr.ShareSessionNotFound},
		{"no session to end", fetch(func(r *kmsg.ShareFetchRequest) { r.ShareSessionEpoch = -1 }), kerr.ShareSessionNotFound},
		{"acknowledgements before there is a session", fetch(func(r *kmsg.ShareFetchRequest) {
			r.Topics[0].Partitions[0].AcknowledgementBatches = ackBatch(0, 0, window.Accept)
		}), kerr.InvalidRequest},
		{"an unknown acquire mode", fetch(func(r *kmsg.ShareFetchRequest) { r.ShareAcquireMode = 2 }), kerr.InvalidRequest},
		{"renewal and records", fetch(func(r *kmsg.ShareFetchRequest) { r.IsRenewAck = true }), kerr.InvalidRequest},
		{"to acknowledge with the first request", func() kmsg.Request { w.epoch["m"] = 0; return w.acknowledgement("m", 0, 0, 1) }(), kerr.InvalidShareSessionEpoch},
		{"to acknowledge without a session", func() kmsg.Request { w.epoch["m"] = 3; return w.acknowledgement("m", 0, 0, 1) }(), kerr.ShareSessionNotFound},
	} {
		assert.ErrorIs(t, w.refusal(tt.req), tt.want, "%s", tt.name)
	}
	w.epoch["m"] = 0
	o := aConn()
	req := w.fetchOf("m", 0)
	req.MaxWaitMillis = 0
	w.fetches(o, req)
	w.epoch["m"] = 7
	assert.ErrorIs(t, w.refusal(w.fetchOf("m")), kerr.InvalidShareSessionEpoch, "another epoch")
	w.opts.Shares = nil
	w.h = handler.New(w.opts)
	assert.ErrorIs(t, w.refusal(w.fetchOf("m")), kerr.UnsupportedVersion, "without share groups")
	assert.ErrorIs(t, w.refusal(w.acknowledgement("m", 0, 0, 1)), kerr.UnsupportedVersion, "without share groups")
}

func TestPartitionsThatCannotBeFetchedAreErrorsOfTheirOwn(t *testing.T) {
	w := newShareWorld(t)
	w.request(w.produceRequest(9, 0))
	req := w.fetchOf("m", 0, 9)
	none := kmsg.NewShareFetchRequestTopic()
	none.TopicID, none.Partitions = [16]byte{1, 2, 3}, req.Topics[0].Partitions[:1]
	req.Topics = append(req.Topics, none)
	o := aConn()
	got := w.fetches(o, req)
	codes := map[int16]int{}
	for _, p := range got {
		codes[p.ErrorCode]++
	}
	assert.EqualMaps(t, codes, map[int16]int{0: 1, kerr.UnknownTopicOrPartition.Code: 1, kerr.UnknownTopicID.Code: 1})
	forget := w.fetchOf("m")
	forget.ForgottenTopicsData = append(forget.ForgottenTopicsData, kmsg.ShareFetchRequestForgottenTopicsData{TopicID: w.id(), Partitions: []int32{9}},
		kmsg.ShareFetchRequestForgottenTopicsData{TopicID: none.TopicID, Partitions: []int32{0}})
	forget.MaxWaitMillis = 0
	for _, p := range w.fetches(o, forget) {
		assert.Equal(t, p.ErrorCode, 0, "error of what was not forgotten")
	}
}

func TestASessionTooManyIsToldAfterAWhile(t *testing.T) {
	w := newShareWorld(t)
	w.share(4) // Of which one principal may have three.
	for _, member := range []string{"a", "b", "c"} {
		req := w.fetchOf(member, 0)
		req.MaxWaitMillis = 0
		w.fetches(aConn(), req)
	}
	req := w.fetchOf("d", 0)
	req.MaxWaitMillis = 20
	began := time.Now()
	assert.ErrorIs(t, w.refusal(req), kerr.ShareSessionLimitReached)
	assert.True(t, time.Since(began) >= 20*time.Millisecond, "it is told at once")
}

func TestRecordsAreOneBudgetForAllPartitions(t *testing.T) {
	w := newShareWorld(t)
	w.request(w.produceRequest(9, 0, 1))
	o := aConn()
	acquired := func(req *kmsg.ShareFetchRequest) (n int64) {
		for _, p := range w.fetches(o, req) {
			for _, r := range p.AcquiredRecords {
				n += r.LastOffset - r.FirstOffset + 1
			}
		}
		return n
	}
	for n := acquired(w.fetchOf("n", 0, 1)); n < 6; { // Both are loaded then.
		n += acquired(w.fetchOf("n"))
	}
	req := w.fetchOf("m", 0, 1)
	req.MaxRecords = 0
	assert.Equal(t, len(w.fetches(o, req)), 2, "partitions that are told because they are new")
	w.epoch["n"] = -1
	w.fetches(o, w.fetchOf("n")) // It releases all.
	for _, want := range []int64{4, 2} {
		req := w.fetchOf("m")
		req.MaxRecords, req.ShareAcquireMode = 4, 1
		assert.Equal(t, acquired(req), want, "records of both partitions")
	}
}
