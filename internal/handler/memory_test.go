package handler_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
	"muster/internal/handler"
	"muster/internal/protocol"
	"muster/internal/record"
	"muster/internal/store"
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

// bulk puts so many large batches into a partition.
func (w *world) bulk(batches int) (size int) {
	b, err := record.Build(record.PlainTemplate(), []record.Record{{Timestamp: 1000, Value: make([]byte, 200_000)}})
	must(w.t, err)
	for range batches {
		req := w.produceRequest(9, 0)
		req.Topics[0].Partitions[0].Records = slices.Clone(b)
		assert.MustEqual(w.t, w.request(req).(*kmsg.ProduceResponse).Topics[0].Partitions[0].ErrorCode, 0, "error code")
	}
	return len(b)
}

func TestFetchesFromFarAwayGetLessWhenMemoryIsScarce(t *testing.T) {
	w := newWorld(t)
	size := w.bulk(40)
	const free = 16 << 20
	w.h.SetFar(free)
	req := waitingFetch(math.MaxInt32)
	req.MaxBytes, req.MinBytes = 50<<20, 50<<20
	req.Topics[0].Partitions[0].PartitionMaxBytes = 50 << 20
	frame := kmsg.NewRequestFormatter().AppendRequest(nil, req, 7)[4:]
	var unread []*protocol.Response
	taken := 0
	for want := free / 4; want > 0; want = max((free-taken)/4, 1<<20) {
		resp, err := w.h.Serve(t.Context(), handler.Origin{Listener: "L"}, slices.Clone(frame))
		must(t, err)
		unread = append(unread, resp)
		got := resp.Memory()
		if got < size || got > want+1000 || got < want-size {
			t.Fatalf("answer %d has %d bytes, with %d free", len(unread), got, free-taken)
		}
		taken += got / size * size
		assert.MustEqual(t, w.h.FreeRecords(), free-taken, "bytes free")
		if taken > free {
			break
		}
	}
	for _, resp := range unread {
		resp.Release()
	}
	assert.Equal(t, w.h.FreeRecords(), free, "bytes free after all answers were written")
}

func TestAFetchFromFarAwayThatReadsAgainGivesUpWhatItHad(t *testing.T) {
	w := newWorld(t)
	w.bulk(1)
	const free = 16 << 20
	w.h.SetFar(free)
	w.conn = newFakeConn()
	go func() {
		<-w.conn.parked
		close(w.conn.hangUp)
	}()
	req := waitingFetch(math.MaxInt32)
	req.MinBytes = 10 << 20 // It reads before it waits, and again when it does.
	req.Topics[0].Partitions[0].PartitionMaxBytes = 1 << 20
	w.request(req)
	assert.Equal(t, w.h.FreeRecords(), free, "bytes free")
}

// slowStore is a store that makes nothing durable until it is told to.
type slowStore struct {
	store.Store
	flushes chan func()   // nil as long as it is not slow
	began   func()        // called when something is to be made durable, unless it is nil
	held    *atomic.Int32 // counts reads that are not given up, unless it is nil
}

func (s *slowStore) Open(ctx context.Context, tp store.TopicPartition, epoch int32, cfg store.LogConfig) (store.Log, error) {
	l, err := s.Store.Open(ctx, tp, epoch, cfg)
	return slowLog{l, s}, err
}

type slowLog struct {
	store.Log
	store *slowStore
}

func (l slowLog) Read(ctx context.Context, req store.ReadRequest) (store.Records, error) {
	r, err := l.Log.Read(ctx, req)
	if l.store.held == nil || r.Len == 0 {
		return r, err
	}
	l.store.held.Add(1)
	held := store.HeldRecords(r.Bytes, func() { l.store.held.Add(-1) })
	held.Next = r.Next
	return held, err
}

func (l slowLog) Flush(done func(error)) {
	if l.store.began != nil {
		l.store.began()
	}
	if l.store.flushes == nil {
		l.Log.Flush(done)
		return
	}
	l.store.flushes <- func() { l.Log.Flush(done) }
}

func TestAProduceThatWaitsForTheDiskTakesWhatItNames(t *testing.T) {
	w := newWorld(t)
	w.store.flushes = make(chan func(), 1)
	req := w.produceRequest(9, 0)
	for i := range 999 {
		req.Topics[0].Partitions = append(req.Topics[0].Partitions, kmsg.ProduceRequestTopicPartition{Partition: int32(10 + i)})
	}
	frame := kmsg.NewRequestFormatter().AppendRequest(nil, req, 7)[4:]
	resp, err := w.h.Serve(t.Context(), handler.Origin{Listener: "L"}, frame)
	must(t, err)
	if !resp.Pending() || resp.Memory() < 100_000 {
		t.Errorf("pending: %v, %d bytes", resp.Pending(), resp.Memory())
	}
	(<-w.store.flushes)()
	<-resp.Ready()
}
