package handler_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
	"muster/internal/auth"
	"muster/internal/handler"
	"muster/internal/metadata"
)

const (
	alice = auth.Principal("User:alice")
	bob   = auth.Principal("User:bob")
)

// may gives someone a right.
func (w *guardedWorld) may(who auth.Principal, op auth.Operation, t auth.ResourceType, name string) {
	w.t.Helper()
	w.allow(rule(who, auth.Allow, op, t, name))
}

// fetching asks for partition 0 of t in a session.
func (w *guardedWorld) fetching(version int16, id, epoch int32) *kmsg.FetchRequest {
	req := waitingFetch(0)
	req.Version, req.SessionID, req.SessionEpoch = version, id, epoch
	req.Topics[0].TopicID, req.Topics[0].Partitions[0].PartitionMaxBytes = w.c.Image().Topic("t").ID, 1<<20
	if epoch > 0 {
		req.Topics = nil
	}
	return req
}

func TestARightThatIsTakenAwayEndsAFetchSession(t *testing.T) {
	for _, version := range []int16{12, 13} {
		w := newGuardedWorld(t)
		w.may(alice, auth.Read, auth.Topic, "t")
		id := w.as(alice, w.fetching(version, 0, 0)).(*kmsg.FetchResponse).SessionID
		assert.MustTrue(t, id != 0, "there is no session")
		w.revoke(alice)
		w.as(root, w.produceRequest(9, 0))
		got := w.as(alice, w.fetching(version, id, 1)).(*kmsg.FetchResponse)
		if len(got.Topics) != 1 || got.Topics[0].Partitions[0].ErrorCode != kerr.TopicAuthorizationFailed.Code ||
			len(got.Topics[0].Partitions[0].RecordBatches) > 0 || got.Topics[0].Partitions[0].HighWatermark != -1 {
			t.Errorf("v%d: without the right: %+v", version, got)
		}
		w.may(alice, auth.Read, auth.Topic, "t")
		got = w.as(alice, w.fetching(version, id, 2)).(*kmsg.FetchResponse)
		if len(got.Topics) != 1 || got.Topics[0].Partitions[0].ErrorCode != 0 || len(got.Topics[0].Partitions[0].RecordBatches) == 0 {
			t.Errorf("v%d: with the right again: %+v", version, got)
		}
	}
}

func TestARightThatIsTakenAwayEndsAFetchThatWaits(t *testing.T) {
	w := newGuardedWorld(t)
	w.may(alice, auth.Read, auth.Topic, "t")
	conn, answered := newFakeConn(), make(chan kmsg.Response)
	go func() {
		req := waitingFetch(60_000)
		// More than there will be: a read that goes on while the right is lost is not the last one.
		req.Topics[0].Partitions[0].PartitionMaxBytes, req.MinBytes = 1<<20, 1<<20
		answered <- w.from(handler.Origin{Listener: "L", Host: "127.0.0.1", Principal: alice, Conn: conn}, req)
	}()
	<-conn.parked
	w.revoke(alice)
	w.as(root, w.produceRequest(9, 0))
	got := (<-answered).(*kmsg.FetchResponse).Topics[0].Partitions[0]
	assert.True(t, got.ErrorCode == kerr.TopicAuthorizationFailed.Code && len(got.RecordBatches) == 0, "got %+v", got)
}

func TestAFetchSessionIsItsOwnersOnly(t *testing.T) {
	w := newGuardedWorld(t)
	w.may(alice, auth.Read, auth.Topic, "t")
	w.may(bob, auth.Read, auth.Topic, "t")
	id := w.as(alice, w.fetching(12, 0, 0)).(*kmsg.FetchResponse).SessionID
	if got := w.as(bob, w.fetching(12, id, 1)).(*kmsg.FetchResponse); got.ErrorCode != kerr.FetchSessionIDNotFound.Code || len(got.Topics) > 0 {
		t.Errorf("somebody else in the session: %+v", got)
	}
	w.as(bob, w.fetching(12, id, -1))
	assert.Equal(t, w.as(alice, w.fetching(12, id, 1)).(*kmsg.FetchResponse).ErrorCode, 0, "somebody else ended the session: error")
}

func TestWithoutAnAuthorizerEverythingIsAllowed(t *testing.T) {
	w := &guardedWorld{newWorld(t)}
	w.allow(rule(alice, auth.Deny, auth.All, auth.Topic, "t"))
	assert.Equal(t, w.as(alice, w.produceRequest(9, 0)).(*kmsg.ProduceResponse).Topics[0].Partitions[0].ErrorCode, 0)
}

func TestTheBrokerItselfMayDoEverything(t *testing.T) {
	w := newGuardedWorld(t)
	req := kmsg.NewPtrMetadataRequest()
	resp, err := w.h.Do(t.Context(), req)
	assert.True(t, err == nil && len(resp.(*kmsg.MetadataResponse).Topics) != 0, "%+v, %v", resp, err)
}

func TestBrokersOfTheClusterNeedNoRules(t *testing.T) {
	w := newGuardedWorld(t)
	marked := func(from handler.Origin) int16 {
		return w.from(from, markers(1, 0, "t", 0)).(*kmsg.WriteTxnMarkersResponse).Markers[0].Topics[0].Partitions[0].ErrorCode
	}
	assert.Equal(t, marked(handler.Origin{Listener: "L", Host: "127.0.0.1", Principal: alice}), kerr.ClusterAuthorizationFailed.Code, "a client writes a marker: error")
	assert.Equal(t, marked(aBroker), 0, "who logged in as a broker writes a marker: error")
}

func TestNobodyIsAnonymous(t *testing.T) {
	w := newGuardedWorld(t)
	if got := w.as("", w.produceRequest(9, 0)).(*kmsg.ProduceResponse).Topics[0].Partitions[0].ErrorCode; got != kerr.TopicAuthorizationFailed.Code {
		t.Errorf("without the right: error %d", got)
	}
	w.may(auth.Anonymous, auth.Write, auth.Topic, "t")
	assert.Equal(t, w.as("", w.produceRequest(9, 0)).(*kmsg.ProduceResponse).Topics[0].Partitions[0].ErrorCode, 0, "with the right: error")
}

func TestATopicIsNotCreatedForWhoMayNot(t *testing.T) {
	w := newGuardedWorld(t)
	w.may(alice, auth.Describe, auth.Topic, "new")
	w.may(alice, auth.Create, auth.Topic, "hidden") // Which does not mean to see it.
	req := kmsg.NewPtrMetadataRequest()
	req.Version, req.AllowAutoTopicCreation = 9, true
	for _, name := range []string{"new", "hidden"} {
		req.Topics = append(req.Topics, kmsg.MetadataRequestTopic{Topic: &name})
	}
	for _, got := range w.as(alice, req).(*kmsg.MetadataResponse).Topics {
		if got.ErrorCode != kerr.TopicAuthorizationFailed.Code || w.c.Image().Topic(*got.Topic) != nil {
			t.Errorf("%s: error %d, created %t", *got.Topic, got.ErrorCode, w.c.Image().Topic(*got.Topic) != nil)
		}
	}
}

func TestTheNameOfATopicKnownByItsIDIsToldToWhoMaySeeIt(t *testing.T) {
	w := newGuardedWorld(t)
	req := kmsg.NewPtrDeleteTopicsRequest()
	req.Version, req.Topics = 6, []kmsg.DeleteTopicsRequestTopic{{TopicID: w.c.Image().Topic("t").ID}}
	if got := w.as(alice, req).(*kmsg.DeleteTopicsResponse).Topics[0]; got.ErrorCode != topicDenied || got.Topic != nil {
		t.Errorf("who may not see it: %+v", got)
	}
	w.may(alice, auth.Describe, auth.Topic, "t")
	if got := w.as(alice, req).(*kmsg.DeleteTopicsResponse).Topics[0]; got.ErrorCode != topicDenied || got.Topic == nil || *got.Topic != "t" {
		t.Errorf("who may see it: %+v", got)
	}
	assert.True(t, w.c.Image().Topic("t") != nil, "the topic is gone")
}

func TestOfManyTopicsEachHasItsRight(t *testing.T) {
	w := newGuardedWorld(t)
	req := w.produceRequest(9)
	req.Topics = nil
	for i := range 20 {
		name := fmt.Sprint("many-", i)
		w.create(metadata.NewTopic{Name: name, Partitions: 1, Replication: 1})
		if i%3 == 0 {
			w.may(alice, auth.Write, auth.Topic, name)
		}
		for range 2 { // The second time from memory.
			req.Topics = append(req.Topics, kmsg.ProduceRequestTopic{Topic: name, Partitions: []kmsg.ProduceRequestTopicPartition{{Records: batch(t, 1)}}})
		}
	}
	for i, topic := range w.as(alice, req).(*kmsg.ProduceResponse).Topics {
		want := topicDenied
		if i/2%3 == 0 {
			want = 0
		}
		assert.Equal(t, topic.Partitions[0].ErrorCode, want, "%s: error", topic.Topic)
	}
}

func TestOperationsThatAreToldAreThoseThatAreAllowed(t *testing.T) {
	w := newGuardedWorld(t)
	w.may(alice, auth.Read, auth.Topic, "t")
	w.may(alice, auth.Delete, auth.Group, "g")
	w.commit(names{topic: "t", group: "g"})
	w.joinNew(names{topic: "t", group: "new"})
	w.may(alice, auth.Describe, auth.Group, "new")
	told := func(who auth.Principal) (topic, cluster, paged, classic, consumer int32) {
		req := kmsg.NewPtrMetadataRequest()
		name := "t"
		req.Version, req.IncludeTopicAuthorizedOperations, req.IncludeClusterAuthorizedOperations = 9, true, true
		req.Topics = []kmsg.MetadataRequestTopic{{Topic: &name}}
		m := w.as(who, req).(*kmsg.MetadataResponse)
		pages := kmsg.NewPtrDescribeTopicPartitionsRequest()
		pages.ResponsePartitionLimit, pages.Topics = 10, []kmsg.DescribeTopicPartitionsRequestTopic{{Topic: "t"}}
		groups := kmsg.NewPtrDescribeGroupsRequest()
		groups.Version, groups.IncludeAuthorizedOperations, groups.Groups = 5, true, []string{"g"}
		describe := kmsg.NewPtrConsumerGroupDescribeRequest()
		describe.IncludeAuthorizedOperations, describe.Groups = true, []string{"new"}
		return m.Topics[0].AuthorizedOperations, m.AuthorizedOperations,
			w.as(who, pages).(*kmsg.DescribeTopicPartitionsResponse).Topics[0].AuthorizedOperations,
			w.as(who, groups).(*kmsg.DescribeGroupsResponse).Groups[0].AuthorizedOperations,
			w.as(who, describe).(*kmsg.ConsumerGroupDescribeResponse).Groups[0].AuthorizedOperations
	}
	bits := func(ops ...auth.Operation) int32 { return int32(auth.Set(ops...)) }
	topic, cluster, paged, classic, consumer := told(alice)
	if want := bits(auth.Read, auth.Describe); topic != want || paged != want || cluster != 0 {
		t.Errorf("topic %b and %b, cluster %b", topic, paged, cluster)
	}
	assert.True(t, classic == bits(auth.Delete, auth.Describe) && consumer == bits(auth.Describe), "groups %b and %b", classic, consumer)
	w.may(alice, auth.Alter, auth.Cluster, auth.ClusterName)
	if _, cluster, _, _, _ = told(alice); cluster != bits(auth.Alter, auth.Describe) {
		t.Errorf("cluster %b", cluster)
	}
	topic, cluster, paged, classic, consumer = told(root)
	if topic != int32(auth.Topic.Operations()) || paged != topic || cluster != int32(auth.Cluster.Operations()) ||
		classic != int32(auth.Group.Operations()) || consumer != classic {
		t.Errorf("a super user: %b, %b, %b, %b, %b", topic, cluster, paged, classic, consumer)
	}
}

// denialLog has a handler log to a buffer, by a clock that stands still, and count what
// was denied.
func denialLog(t *testing.T) (w *guardedWorld, log *bytes.Buffer, now *time.Time, counted *[]auth.Request) {
	w = newGuardedWorld(t)
	log, now, counted = &bytes.Buffer{}, new(time.Time), new([]auth.Request)
	*now = time.Unix(1000, 0)
	w.opts.Logger = slog.New(slog.NewTextHandler(log, nil))
	w.opts.Now = func() time.Time { return *now }
	w.opts.Denied = func(q auth.Request) { *counted = append(*counted, q) }
	w.h = handler.New(w.opts)
	return w, log, now, counted
}

func TestADenialIsLoggedOnceAMinuteWithWhatWouldAllowIt(t *testing.T) {
	w, log, now, counted := denialLog(t)
	ask := func() int {
		w.as(alice, w.produceRequest(9, 0, 1))
		return strings.Count(log.String(), "\n")
	}
	if n := ask(); n != 1 || !strings.Contains(log.String(), `allow_with="muster acls add alice write topic t"`) {
		t.Errorf("%d lines: %s", n, log)
	}
	want := auth.Request{Principal: alice, Host: "127.0.0.1", Operation: auth.Write, Type: auth.Topic, Name: "t"}
	if len(*counted) != 1 || (*counted)[0] != want {
		t.Errorf("a request with two partitions of a topic counts as %v", *counted)
	}
	*now = now.Add(time.Minute - 1)
	if n := ask(); n != 1 || len(*counted) != 2 {
		t.Errorf("within the minute: %d lines, %d counted", n, len(*counted))
	}
	*now = now.Add(1)
	assert.Equal(t, ask(), 2, "after the minute: lines")
	elsewhere := handler.Origin{Listener: "L", Host: "10.0.0.1", Principal: alice}
	if w.from(elsewhere, w.produceRequest(9, 0)); strings.Count(log.String(), "\n") != 2 {
		t.Errorf("from another host: %s", log)
	}
	if w.as(bob, w.produceRequest(9, 0)); strings.Count(log.String(), "\n") != 3 {
		t.Errorf("somebody else: %s", log)
	}
}

func TestDenialsDoNotFloodTheLog(t *testing.T) {
	w, log, now, counted := denialLog(t)
	ask := func(prefix string, n int) {
		req := kmsg.NewPtrDeleteGroupsRequest()
		for i := range n {
			req.Groups = append(req.Groups, fmt.Sprint(prefix, i))
		}
		w.as(alice, req)
	}
	ask("g", 5000)
	if n := strings.Count(log.String(), "\n"); n != 200 || len(*counted) != 5000 {
		t.Errorf("%d lines, %d counted", n, len(*counted))
	}
	*now = now.Add(time.Minute)
	log.Reset()
	ask("h", 1)
	if n := strings.Count(log.String(), "\n"); n != 1 || !strings.Contains(log.String(), "not_logged=4800") {
		t.Errorf("%d lines: %s", n, log)
	}
}

func TestWhatIsLeftOutIsNoDenial(t *testing.T) {
	w, log, _, counted := denialLog(t)
	w.as(alice, &kmsg.MetadataRequest{Version: 9})
	w.as(alice, &kmsg.ListGroupsRequest{Version: 4})
	w.as(alice, &kmsg.ListTransactionsRequest{})
	if log.Len() > 0 || len(*counted) > 0 {
		t.Errorf("%v: %s", *counted, log)
	}
}
