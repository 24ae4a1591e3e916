package handler_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/metadata"
)

func TestASessionTellsWhetherATopicIsGoneOrAnotherOneNow(t *testing.T) {
	w := newWorld(t)
	topic := metadata.NewTopic{Name: "s", Partitions: 1, Replication: 1}
	w.create(topic)
	id := w.c.Image().Topic("s").ID
	fetch := func(session, epoch int32, named bool) *kmsg.FetchResponse {
		req := kmsg.NewPtrFetchRequest()
		req.Version, req.MaxBytes, req.SessionID, req.SessionEpoch = 13, 1<<20, session, epoch
		if named {
			part := kmsg.NewFetchRequestTopicPartition()
			part.PartitionMaxBytes = 1 << 20
			req.Topics = []kmsg.FetchRequestTopic{{TopicID: id, Partitions: []kmsg.FetchRequestTopicPartition{part}}}
		}
		return w.request(req).(*kmsg.FetchResponse)
	}
	want := func(what string, resp *kmsg.FetchResponse, want error) {
		t.Helper()
		if len(resp.Topics) != 1 || resp.Topics[0].TopicID != id || kerr.ErrorForCode(resp.Topics[0].Partitions[0].ErrorCode) != want {
			t.Errorf("%s: %+v, want %v", what, resp.Topics, want)
		}
	}
	first := fetch(0, 0, true)
	want("the first fetch", first, nil)
	if errs := w.c.DeleteTopics(t.Context(), []string{"s"}); errs[0] != nil {
		t.Fatal(errs[0])
	}
	want("after it was deleted", fetch(first.SessionID, 1, false), kerr.UnknownTopicOrPartition)
	want("and again", fetch(first.SessionID, 2, false), kerr.UnknownTopicOrPartition)
	w.create(topic)
	want("after it was created again", fetch(first.SessionID, 3, false), kerr.InconsistentTopicID)
	want("without session", fetch(0, -1, true), kerr.UnknownTopicID)
	second := fetch(0, 0, true)
	want("in a new session", second, kerr.UnknownTopicID)
	want("the next of that", fetch(second.SessionID, 1, false), kerr.UnknownTopicID)
}
