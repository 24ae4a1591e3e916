package handler_test

import (
	"context"
	"encoding/binary"
	"log/slog"
	"maps"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
	"muster/internal/audit"
	"muster/internal/cluster"
	"muster/internal/coordinator"
	"muster/internal/group"
	"muster/internal/handler"
	"muster/internal/machine"
	"muster/internal/metadata"
	"muster/internal/metadata/config"
	"muster/internal/partition"
	"muster/internal/peer"
	"muster/internal/protocol"
	"muster/internal/record"
	"muster/internal/store/mem"
	"muster/internal/txn"
)

// world is a handler with real partitions and metadata, without sockets.
type world struct {
	t      testing.TB
	h      *handler.Handler
	c      *cluster.Controller
	m      *partition.Manager
	groups *coordinator.Coordinator
	txns   *coordinator.Coordinator
	store  *slowStore
	opts   handler.Options
	conn   *fakeConn // nil for none

	leaving func() // called when a member of a share group was released
	close   func() // ends what runs in the background, at the end of the test at the latest
}

// must ends the test if something fails that has to work.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newWorld has a topic t with two partitions, and coordinators with three and two.
func newWorld(t testing.TB) *world {
	t.Helper()
	w := emptyWorld(t)
	w.fillWorld()
	return w
}

// fillWorld creates those.
func (w *world) fillWorld() {
	w.t.Helper()
	w.create(metadata.NewTopic{Name: "t", Partitions: 2, Replication: 1})
	w.create(metadata.NewTopic{Name: metadata.OffsetsTopic})
	w.create(metadata.NewTopic{Name: metadata.TransactionsTopic})
	w.groups.Lead([]int32{0, 0, 0})
	w.txns.Lead([]int32{0, 0})
}

// create creates a topic as the broker itself does.
func (w *world) create(topic metadata.NewTopic) {
	w.t.Helper()
	if _, errs := w.c.CreateTopics(context.Background(), []metadata.NewTopic{topic}, false); errs[0] != nil {
		w.t.Fatal(errs[0])
	}
}

// emptyWorld has no topics.
func emptyWorld(t testing.TB) *world {
	t.Helper()
	return worldWith(t, nil)
}

// worldWith is an empty one with some settings.
func worldWith(t testing.TB, settings map[string]string) *world {
	t.Helper()
	logger := slog.New(slog.DiscardHandler)
	all := map[string]string{"num.partitions": "2", "offsets.topic.num.partitions": "3", "transaction.state.log.num.partitions": "2"}
	maps.Copy(all, settings)
	defaults, err := config.NewBroker(all)
	must(t, err)
	w := &world{t: t, store: &slowStore{Store: mem.New()}}
	peers := peer.New(peer.Options{
		Self: 1, Image: func() *metadata.Image { return w.c.Image() }, Logger: logger,
		Own: func(ctx context.Context, req kmsg.Request) (kmsg.Response, error) { return w.h.Do(ctx, req) },
	})
	w.m = partition.NewManager(partition.Options{Store: w.store, Self: 1, Logger: logger, Coordinator: peers})
	cfg := group.DefaultConfig()
	cfg.InitialDelay = 0
	w.groups = w.coordinate(peers, metadata.OffsetsTopic, group.Definition(func() group.Config { return cfg }))
	w.txns = w.coordinate(peers, metadata.TransactionsTopic, txn.Definition(txn.DefaultConfig))
	w.close = func() {
		w.groups.Close()
		w.txns.Close()
	}
	t.Cleanup(w.close)
	self := metadata.Broker{ID: 1, Endpoints: []metadata.Endpoint{{Listener: "L", Host: "h", Port: 1}}}
	w.c, err = cluster.Open(context.Background(), cluster.Options{Store: w.store, Self: self, Defaults: defaults, Logger: logger, OnChange: w.m.Apply})
	must(t, err)
	w.opts = handler.Options{NodeID: 1, Controller: w.c, Partitions: w.m, Groups: w.groups, Transactions: w.txns, Logger: logger, SessionSlots: 10}
	w.opts.Audit = func(audit.Entry) {} // So that all tests run what it takes to tell it.
	w.h = handler.New(w.opts)
	return w
}

// coordinate makes a coordinator over a topic.
func (w *world) coordinate(peers *peer.Client, topic string, kind machine.Definition) *coordinator.Coordinator {
	return coordinator.New(coordinator.Options{
		Core: kind, Logger: slog.New(slog.DiscardHandler), Send: peers.Send,
		Log:   func(i int32) coordinator.Log { return memLog{w.m.Get, topic, i} },
		Image: func() *metadata.Image { return w.c.Image() },
	})
}

// memLog is a partition of an internal topic.
type memLog struct {
	get   func(string, int32) *partition.Partition
	topic string
	index int32
}

func (l memLog) Append(ctx context.Context, batch []byte, done func(int64, error)) {
	l.get(l.topic, l.index).AppendOwn(ctx, batch, done)
}

func (l memLog) Start() int64 { return 0 }

func (l memLog) MaxBatch() int { return 1 << 20 }

func (l memLog) Reopen(context.Context) error { return nil }

func (l memLog) Read(context.Context, int64) ([]byte, error) { return nil, nil }

// request sends a request through the handler and decodes the answer.
func (w *world) request(req kmsg.Request) kmsg.Response {
	w.t.Helper()
	return w.from(handler.Origin{Listener: "L", Host: "127.0.0.1"}, req)
}

// byBroker sends a request as another broker of the cluster does.
func (w *world) byBroker(req kmsg.Request) kmsg.Response {
	w.t.Helper()
	return w.from(aBroker, req)
}

// aBroker is where requests of another broker come from.
var aBroker = handler.Origin{Listener: "L", Host: "127.0.0.1", Principal: "Broker:muster", Broker: true}

// from sends a request from somewhere.
func (w *world) from(origin handler.Origin, req kmsg.Request) kmsg.Response {
	w.t.Helper()
	return w.fromClient("test", origin, req)
}

func (w *world) fromClient(id string, origin handler.Origin, req kmsg.Request) kmsg.Response {
	w.t.Helper()
	frame := kmsg.NewRequestFormatter(kmsg.FormatterClientID(id)).AppendRequest(nil, req, 7)[4:]
	if w.conn != nil {
		origin.Conn = w.conn
	}
	resp, err := w.h.Serve(w.t.Context(), origin, frame)
	if err != nil {
		w.t.Fatalf("%s v%d: %v", kmsg.NameForKey(req.Key()), req.GetVersion(), err)
	}
	return w.decode(req, resp)
}

// decode reads the answer to a request.
func (w *world) decode(req kmsg.Request, resp *protocol.Response) kmsg.Response {
	w.t.Helper()
	if resp.Pending() {
		<-resp.Ready()
	}
	var b []byte
	for _, p := range resp.Parts {
		if p.Bytes == nil {
			loaded, err := p.Records.Load()
			must(w.t, err)
			p.Bytes = loaded
		}
		b = append(b, p.Bytes...)
	}
	resp.Release()
	head := 8
	out := req.ResponseKind()
	if out.IsFlexible() && req.Key() != 18 {
		head++
	}
	if err := out.ReadFrom(b[head:]); err != nil {
		w.t.Fatalf("%s v%d: %v", kmsg.NameForKey(req.Key()), req.GetVersion(), err)
	}
	return out
}

func batch(t testing.TB, n int) record.Batch {
	t.Helper()
	recs := make([]record.Record, n)
	for i := range recs {
		recs[i] = record.Record{OffsetDelta: int32(i), Timestamp: int64(1000 + i), Value: []byte("v")}
	}
	b, err := record.Build(record.PlainTemplate(), recs)
	must(t, err)
	return b
}

func (w *world) produceRequest(version int16, parts ...int32) *kmsg.ProduceRequest {
	req := kmsg.NewPtrProduceRequest()
	req.Version, req.Acks = version, -1
	topic := kmsg.NewProduceRequestTopic()
	topic.Topic, topic.TopicID = "t", w.c.Image().Topic("t").ID
	for _, p := range parts {
		part := kmsg.NewProduceRequestTopicPartition()
		part.Partition, part.Records = p, batch(w.t, 3)
		topic.Partitions = append(topic.Partitions, part)
	}
	req.Topics = append(req.Topics, topic)
	return req
}

func TestEveryVersionOfEveryAPIIsAnswered(t *testing.T) {
	w := newWorld(t)
	for _, e := range handler.Table() {
		for v := max(e.Min, e.ServedFrom); v <= e.Max; v++ {
			req := kmsg.RequestForKey(e.Key)
			req.(interface{ Default() }).Default()
			req.SetVersion(v)
			if p, ok := req.(*kmsg.ProduceRequest); ok {
				p.Acks = -1 // Without it there is no answer.
			}
			w.request(req)
		}
	}
}

func TestProduceThenFetchInEveryVersion(t *testing.T) {
	w := newWorld(t)
	offset := int64(0)
	for v := int16(3); v <= 13; v++ {
		resp := w.request(w.produceRequest(v, 0, 9)).(*kmsg.ProduceResponse)
		got := resp.Topics[0].Partitions
		if got[0].ErrorCode != 0 || got[0].BaseOffset != offset || got[1].ErrorCode != kerr.UnknownTopicOrPartition.Code {
			t.Fatalf("Produce v%d: %+v", v, got)
		}
		offset += 3
	}
	for v := int16(4); v <= 18; v++ {
		req := kmsg.NewPtrFetchRequest()
		req.Version, req.MaxBytes, req.SessionEpoch = v, 1<<20, -1
		topic := kmsg.NewFetchRequestTopic()
		topic.Topic, topic.TopicID = "t", w.c.Image().Topic("t").ID
		part := kmsg.NewFetchRequestTopicPartition()
		part.FetchOffset, part.PartitionMaxBytes = 4, 1<<20
		topic.Partitions = append(topic.Partitions, part)
		req.Topics = append(req.Topics, topic)
		got := w.request(req).(*kmsg.FetchResponse).Topics[0].Partitions[0]
		first := record.Batch(got.RecordBatches)
		if got.ErrorCode != 0 || got.HighWatermark != offset || first.BaseOffset() != 3 {
			t.Fatalf("Fetch v%d: error %d, high watermark %d, first batch at %d", v, got.ErrorCode, got.HighWatermark, first.BaseOffset())
		}
	}
}

func TestListOffsetsKnowsAllSpecialTimestamps(t *testing.T) {
	w := newWorld(t)
	w.request(w.produceRequest(9, 0))
	for _, c := range []struct {
		version  int16
		ts, want int64
		code     *kerr.Error
	}{
		{1, -1, 3, nil}, {1, -2, 0, nil}, {7, -3, 2, nil}, {8, -4, 0, nil}, {9, -5, -1, nil}, {11, -6, -1, nil},
		{1, 1001, 1, nil}, {1, 5000, -1, nil}, {6, -3, -1, kerr.UnsupportedVersion}, {11, -7, -1, kerr.UnsupportedVersion}, {11, math.MinInt64, -1, kerr.UnsupportedVersion},
	} {
		req := kmsg.NewPtrListOffsetsRequest()
		req.Version = c.version
		topic := kmsg.NewListOffsetsRequestTopic()
		topic.Topic = "t"
		part := kmsg.NewListOffsetsRequestTopicPartition()
		part.Timestamp = c.ts
		topic.Partitions = append(topic.Partitions, part)
		req.Topics = append(req.Topics, topic)
		got := w.request(req).(*kmsg.ListOffsetsResponse).Topics[0].Partitions[0]
		if got.Offset != c.want || kerr.TypedErrorForCode(got.ErrorCode) != c.code {
			t.Errorf("v%d timestamp %d: offset %d, error %d", c.version, c.ts, got.Offset, got.ErrorCode)
		}
	}
}

func TestATimestampThatNobodyKnowsIsRefusedBeforeAllElse(t *testing.T) {
	w := newWorld(t)
	for _, version := range []int16{1, 11} {
		req := &kmsg.ListOffsetsRequest{Version: version, Topics: []kmsg.ListOffsetsRequestTopic{
			{Topic: "none", Partitions: []kmsg.ListOffsetsRequestTopicPartition{{Timestamp: -7}}},
			{Topic: "t", Partitions: []kmsg.ListOffsetsRequestTopicPartition{{Timestamp: -7, CurrentLeaderEpoch: 77}}},
		}}
		for _, topic := range w.request(req).(*kmsg.ListOffsetsResponse).Topics {
			assert.Equal(t, topic.Partitions[0].ErrorCode, kerr.UnsupportedVersion.Code, "v%d, %s: error", version, topic.Topic)
		}
	}
}

func TestACursorThatPointsNowhereIsRefused(t *testing.T) {
	w := newWorld(t)
	describe := func(limit int32, names []string, topic string, partition int32) *kmsg.DescribeTopicPartitionsResponse {
		req := kmsg.NewPtrDescribeTopicPartitionsRequest()
		req.ResponsePartitionLimit = limit
		for _, name := range names {
			req.Topics = append(req.Topics, kmsg.DescribeTopicPartitionsRequestTopic{Topic: name})
		}
		if topic != "" {
			req.Cursor = &kmsg.DescribeTopicPartitionsRequestCursor{Topic: topic, Partition: partition}
		}
		return w.request(req).(*kmsg.DescribeTopicPartitionsResponse)
	}
	both := []string{"t", metadata.OffsetsTopic}
	for _, tt := range []struct {
		cursor    string
		partition int32
	}{{"t", -1}, {"a", 0}, {"s", 0}, {"z", 0}} {
		got := describe(100, both, tt.cursor, tt.partition).Topics
		if len(got) != 2 || got[0].ErrorCode != kerr.InvalidRequest.Code || got[1].ErrorCode != kerr.InvalidRequest.Code || len(got[0].Partitions) != 0 {
			t.Errorf("cursor at %s-%d: %+v", tt.cursor, tt.partition, got)
		}
	}
	if got := describe(100, both, "t", 1).Topics; len(got) != 1 || len(got[0].Partitions) != 1 || got[0].Partitions[0].Partition != 1 {
		t.Errorf("a good cursor: %+v", got)
	}
	if got := describe(100, both, "t", 9).Topics; len(got) != 1 || got[0].ErrorCode != 0 || len(got[0].Partitions) != 0 {
		t.Errorf("a cursor behind the last partition: %+v", got)
	}
	if got := describe(100, nil, "s", 0).Topics; len(got) != 1 || got[0].ErrorCode != 0 || *got[0].Topic != "t" {
		t.Errorf("a cursor between all topics: %+v", got)
	}
	if got := describe(100, nil, "s", -1).Topics; len(got) != 0 {
		t.Errorf("a bad cursor, and all topics: %+v", got)
	}
	if got := describe(0, both, "", 0); len(got.Topics) != 1 || len(got.Topics[0].Partitions) != 1 || got.NextCursor == nil {
		t.Errorf("a limit of none is one of one: %+v", got)
	}
}

func TestDescribeTopicPartitionsPages(t *testing.T) {
	w := newWorld(t)
	if _, errs := w.c.CreateTopics(t.Context(), []metadata.NewTopic{{Name: "big", Partitions: 5, Replication: 1}}, false); errs[0] != nil {
		t.Fatal(errs[0])
	}
	req := kmsg.NewPtrDescribeTopicPartitionsRequest()
	req.ResponsePartitionLimit = 3
	var seen []string
	for range 6 {
		resp := w.request(req).(*kmsg.DescribeTopicPartitionsResponse)
		for _, topic := range resp.Topics {
			for _, p := range topic.Partitions {
				seen = append(seen, *topic.Topic+strconv.Itoa(int(p.Partition)))
				if p.EligibleLeaderReplicas == nil || p.LastKnownELR == nil {
					t.Errorf("%s: eligible leaders %v and %v: Kafka answers with empty lists, not null",
						*topic.Topic, p.EligibleLeaderReplicas, p.LastKnownELR)
				}
			}
		}
		if resp.NextCursor == nil {
			break
		}
		cursor := kmsg.NewDescribeTopicPartitionsRequestCursor()
		cursor.Topic, cursor.Partition = resp.NextCursor.Topic, resp.NextCursor.Partition
		req.Cursor = &cursor
	}
	want := []string{"__consumer_offsets0", "__consumer_offsets1", "__consumer_offsets2", "__transaction_state0", "__transaction_state1", "big0", "big1", "big2", "big3", "big4", "t0", "t1"}
	assert.MustEqual(t, len(seen), len(want), "seen %v", seen)
	for i := range want {
		assert.MustEqual(t, seen[i], want[i], "seen %v", seen)
	}
}

// FuzzServe lets arbitrary frames at the handler. Whatever comes, it answers or
// ends the connection.
func FuzzServe(f *testing.F) {
	w := newWorld(f)
	format := kmsg.NewRequestFormatter(kmsg.FormatterClientID("fuzz"))
	for _, e := range handler.Table() {
		for v := e.Min; v <= e.Max; v++ {
			req := kmsg.RequestForKey(e.Key)
			req.(interface{ Default() }).Default()
			req.SetVersion(v)
			f.Add(format.AppendRequest(nil, req, 1)[4:])
		}
	}
	f.Add(format.AppendRequest(nil, w.produceRequest(9, 0, 1), 1)[4:])
	f.Add(format.AppendRequest(nil, w.produceRequest(13, 0, 1), 1)[4:])
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // So that no fetch waits.
	f.Fuzz(func(t *testing.T, frame []byte) {
		if len(frame) > 2 && binary.BigEndian.Uint16(frame) == 19 && rand.IntN(50) > 0 {
			return // Topics would pile up.
		}
		resp, err := w.h.Serve(ctx, handler.Origin{Listener: "L"}, frame)
		if err != nil || resp == nil {
			return
		}
		if resp.Pending() {
			<-resp.Ready()
		}
		resp.Release()
	})
}
