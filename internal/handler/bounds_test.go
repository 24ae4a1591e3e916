package handler_test

import (
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
	"muster/internal/protocol"
)

// boundsRequest asks for the end of partition 0 of t, and for more.
func boundsRequest(readers ...protocol.Reader) *kmsg.ListOffsetsRequest {
	req := kmsg.NewPtrListOffsetsRequest()
	p := kmsg.NewListOffsetsRequestTopicPartition()
	p.Timestamp = -1
	protocol.AskBounds(&p.UnknownTags, readers)
	req.Version, req.Topics = 7, []kmsg.ListOffsetsRequestTopic{{Topic: "t", Partitions: []kmsg.ListOffsetsRequestTopicPartition{p}}}
	return req
}

func TestBrokersAreToldWhereAPartitionBeginsAndWhoFetchesIt(t *testing.T) {
	w := newWorld(t)
	w.request(w.produceRequest(9, 0))
	began := time.Now()
	w.fetched(0)
	ask := func(by func(kmsg.Request) kmsg.Response, req *kmsg.ListOffsetsRequest) (protocol.Bounds, bool) {
		got := by(req).(*kmsg.ListOffsetsResponse).Topics[0].Partitions[0]
		assert.True(t, got.ErrorCode == 0 && got.Offset == 3, "%+v", got)
		return protocol.GetBounds(&got.UnknownTags)
	}
	readers := []protocol.Reader{{ClientID: "test", Host: "127.0.0.1"}, {ClientID: "test", Host: "127.0.0.2"}}
	got, ok := ask(w.byBroker, boundsRequest(readers...))
	if !ok || got.Start != 0 || got.LastStable != 3 || got.Bytes <= 0 || len(got.Fetched) != 2 || got.Fetched[1] != protocol.NeverFetched {
		t.Fatalf("%+v, %t", got, ok)
	}
	if ago := time.Duration(got.Fetched[0]) * time.Millisecond; ago < 0 || ago > time.Since(began)+2*time.Second {
		t.Errorf("fetched %v ago", ago)
	}
	if got, ok := ask(w.byBroker, boundsRequest()); !ok || !slices.Equal(got.Fetched, []int64{}) {
		t.Errorf("of nobody: %+v, %t", got, ok)
	}
	if got, ok := ask(w.request, boundsRequest(readers...)); ok {
		t.Errorf("a client is told %+v", got)
	}
	plain := boundsRequest()
	plain.Topics[0].Partitions[0].UnknownTags = kmsg.Tags{}
	if got, ok := ask(w.byBroker, plain); ok {
		t.Errorf("who does not ask is told %+v", got)
	}
}
