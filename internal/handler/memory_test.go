package handler_test

import (
	"errors"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/handler"
	"muster/internal/protocol"
)

// refuse sends a request for which there is no room.
func (w *world) refuse(req kmsg.Request) {
	w.t.Helper()
	frame := kmsg.NewRequestFormatter(kmsg.FormatterClientID("test")).AppendRequest(nil, req, 7)[4:]
	_, err := w.h.Serve(w.t.Context(), handler.Origin{Listener: "L", Conn: w.conn}, frame)
	if !errors.Is(err, protocol.ErrMemory) {
		w.t.Errorf("%s: %v", kmsg.NameForKey(req.Key()), err)
	}
}

func TestRequestsThatNameMoreThanThereIsRoomForEndTheirConnection(t *testing.T) {
	const many = 10_000
	w := newWorld(t)
	w.conn = newFakeConn()
	w.conn.limit = 1 << 20
	produce := w.produceRequest(9, 0)
	produce.Topics[0].Partitions = make([]kmsg.ProduceRequestTopicPartition, many)
	fetch := kmsg.NewPtrFetchRequest()
	fetch.Version, fetch.SessionEpoch = 12, -1
	topic := kmsg.NewFetchRequestTopic()
	topic.Topic, topic.Partitions = "t", make([]kmsg.FetchRequestTopicPartition, many)
	fetch.Topics = append(fetch.Topics, topic)
	groups := kmsg.NewPtrDescribeGroupsRequest()
	groups.Version, groups.Groups = 5, make([]string, 100*many)
	for _, req := range []kmsg.Request{produce, fetch, groups} {
		w.conn.held = 0
		w.refuse(req)
	}
}
