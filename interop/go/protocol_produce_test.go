package interop

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
)

func TestResponsesComeInTheOrderOfRequests(t *testing.T) {
	addr := onDisk(t)
	createTopic(t, addr, "order", 3)
	w := dial(t, addr)
	var frames []byte
	for i := range 100 {
		for _, req := range orderRound(i) {
			w.nextID++
			frames = append(frames, w.format.AppendRequest(nil, req, w.nextID)...)
			w.pending = append(w.pending, pendingRequest{w.nextID, req.ResponseKind()})
		}
	}
	sent := make(chan error, 1)
	go func() { // The broker may stop reading while no one reads its answers.
		_, err := w.Write(frames)
		sent <- err
	}()
	for range 100 {
		wantCode(t, "produce", produced(t, next[*kmsg.ProduceResponse](w)).ErrorCode, nil)
		next[*kmsg.MetadataResponse](w)
		if f := fetched(t, next[*kmsg.FetchResponse](w)); f.ErrorCode != 0 || len(f.RecordBatches) == 0 {
			t.Fatalf("fetch: error code %d, %d bytes", f.ErrorCode, len(f.RecordBatches))
		}
		wantCode(t, "produce to nowhere", produced(t, next[*kmsg.ProduceResponse](w)).ErrorCode, kerr.UnknownTopicOrPartition)
		wantCode(t, "produce with acks=1", produced(t, next[*kmsg.ProduceResponse](w)).ErrorCode, nil)
		next[*kmsg.ApiVersionsResponse](w)
	}
	must(t, <-sent)
}

// orderRound is a mix of requests that take different ways through the broker.
func orderRound(i int) []kmsg.Request {
	metadata := kmsg.NewPtrMetadataRequest()
	metadata.Version = 12
	fetch := fetchRequest("order", 0, int32(i%3))
	fetch.MaxWaitMillis = 10_000
	one := batch{values: []string{"one"}}.encode()
	return []kmsg.Request{
		produceRequest("order", int32(i%3), -1, one),
		metadata,
		fetch,
		produceRequest("nowhere", 0, -1, one),
		produceRequest("order", int32(i%3), 1, one),
		kmsg.NewPtrApiVersionsRequest(),
	}
}

func TestAcks0HasNoResponse(t *testing.T) {
	addr := onDisk(t)
	createTopic(t, addr, "quiet", 1)
	w := dial(t, addr)
	for i := range 10 {
		w.sendOnly(produceRequest("quiet", 0, 0, batch{values: []string{fmt.Sprint(i)}}.encode()))
	}
	// The next answer on the connection is that of the next request.
	wantValues(t, "after acks=0", readAll(w, "quiet", 0), []string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"})
}

func TestAcks0ClosesTheConnectionOnError(t *testing.T) {
	w := dial(t, onDisk(t))
	w.sendOnly(produceRequest("no-such-topic", 0, 0, batch{values: []string{"x"}}.encode()))
	w.wantClosed()
}

func TestAcks1IsAnswered(t *testing.T) {
	addr := onDisk(t)
	createTopic(t, addr, "one", 1)
	w := dial(t, addr)
	p := produced(t, ask[*kmsg.ProduceResponse](w, produceRequest("one", 0, 1, batch{values: []string{"x"}}.encode())))
	wantCode(t, "acks=1", p.ErrorCode, nil)
	wantValues(t, "after acks=1", readAll(w, "one", 0), []string{"x"})
}

// Kafka takes such a batch as it is. A stream has a place for each record, and
// refuses it; who produces afterwards must not notice.
func TestABatchWithUnevenOffsetDeltasHarmsNobody(t *testing.T) {
	addr := onDisk(t)
	createTopic(t, addr, "uneven", 1, "muster.redis.layout", "stream")
	w := dial(t, addr)
	for i, b := range []batch{
		{values: values("a", 3)},
		{values: values("b", 3), idempotent: true, producer: newProducerID(w)},
	} {
		records := slices.Concat(b.record(0), b.record(2), b.record(2))
		p := produced(t, ask[*kmsg.ProduceResponse](w, produceRequest("uneven", 0, -1, b.encodeAround(records))))
		if storeKind == "disk" {
			wantCode(t, "uneven", p.ErrorCode, nil)
		} else {
			wantCode(t, "uneven", p.ErrorCode, kerr.InvalidRecord)
			assert.Contains(t, text(p.ErrorMessage), "offset deltas", "the producer is told")
		}
		good := fmt.Sprint("good-", i)
		mustProduce(w, "uneven", 0, batch{values: []string{good}})
		if all := readAll(w, "uneven", 0); len(all) == 0 || all[len(all)-1].value != good {
			t.Errorf("read %+v", all)
		}
	}
}

func TestProduceRefusesBadRequests(t *testing.T) {
	addr := onDisk(t)
	createTopic(t, addr, "plain", 1)
	createTopic(t, addr, "small", 1, "max.message.bytes", "1000")
	createTopic(t, addr, "compacted", 1, "cleanup.policy", "compact")
	good := func() []byte { return batch{values: values("v", 3)}.encode() }
	change := func(b []byte, at int, to byte) []byte { b[at] = to; return b }
	tests := []struct {
		name    string
		topic   string
		acks    int16
		version int16
		records []byte
		want    error
		message string // that the answer's message must contain
	}{
		{"unknown topic", "nowhere", -1, 9, good(), kerr.UnknownTopicOrPartition, ""},
		{"acks of 2", "plain", 2, 9, good(), kerr.InvalidRequiredAcks, "acks"},
		{"message format v0", "plain", -1, 9, change(good(), batchMagic, 0), kerr.InvalidRecord, "v2"},
		{"message format v1", "plain", -1, 9, change(good(), batchMagic, 1), kerr.InvalidRecord, "v2"},
		{"message format v3", "plain", -1, 9, change(good(), batchMagic, 3), kerr.InvalidRecord, ""},
		{"a batch above max.message.bytes", "small", -1, 9, batch{values: []string{strings.Repeat("x", 1000)}}.encode(), kerr.MessageTooLarge, "max.message.bytes"},
		{"a batch above the default limit", "plain", -1, 9, batch{values: []string{strings.Repeat("x", 1<<20)}}.encode(), kerr.MessageTooLarge, ""},
		{"a wrong checksum", "plain", -1, 9, change(good(), 70, 0xff), kerr.CorruptMessage, ""},
		{"a batch cut short", "plain", -1, 9, good()[:70], kerr.CorruptMessage, ""},
		{"no batch", "plain", -1, 9, []byte{}, kerr.InvalidRecord, ""},
		{"two batches", "plain", -1, 9, append(good(), good()...), kerr.InvalidRecord, ""},
		{"zstd below v7", "plain", -1, 6, batch{values: values("v", 1), attributes: 4}.encode(), kerr.UnsupportedCompressionType, ""},
		{"an unknown codec", "plain", -1, 9, batch{values: values("v", 1), attributes: 7}.encode(), kerr.InvalidRecord, ""},
		{"a control batch", "plain", -1, 9, batch{values: values("v", 1), attributes: 0x20}.encode(), kerr.InvalidRecord, ""},
		{"a timestamp far ahead", "plain", -1, 9, batch{values: values("v", 1), timestamp: time.Now().Add(2 * time.Hour).UnixMilli()}.encode(), kerr.InvalidTimestamp, "timestamp"},
		{"no key for a compacted topic", "compacted", -1, 9, good(), kerr.InvalidRecord, "key"},
		{"our own topic", "__cluster_metadata", -1, 9, good(), kerr.InvalidTopicException, ""},
	}
	w := dial(t, addr)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			req := produceRequest(tt.topic, 0, tt.acks, tt.records)
			req.Version = tt.version
			p := produced(t, ask[*kmsg.ProduceResponse](w, req))
			wantCode(t, tt.name, p.ErrorCode, tt.want)
			if !strings.Contains(text(p.ErrorMessage), tt.message) {
				t.Errorf("the message %q does not say %q", text(p.ErrorMessage), tt.message)
			}
			assert.True(t, p.BaseOffset == -1, "base offset %d, want -1", p.BaseOffset)
		})
	}
	for _, topic := range []string{"plain", "small", "compacted"} {
		if recs := readAll(w, topic, 0); len(recs) != 0 {
			t.Errorf("%s has %d records, though all were refused", topic, len(recs))
		}
	}
}

func TestLogAppendTimeTopicsHaveTheBrokersClock(t *testing.T) {
	addr := onDisk(t)
	createTopic(t, addr, "appended", 1, "message.timestamp.type", "LogAppendTime")
	w := dial(t, addr)
	before := time.Now().UnixMilli()
	p := produce(w, "appended", 0, batch{values: values("v", 3), timestamp: 1000})
	after := time.Now().UnixMilli()
	wantCode(t, "produce", p.ErrorCode, nil)
	assert.MustTrue(t, p.LogAppendTime >= before && p.LogAppendTime <= after, "log append time %d is not between %d and %d", p.LogAppendTime, before, after)
	for _, r := range readAll(w, "appended", 0) {
		assert.Equal(t, r.timestamp, p.LogAppendTime, "offset %d has timestamp", r.offset)
	}
	// Other topics keep the producer's.
	createTopic(t, addr, "created", 1)
	p = produce(w, "created", 0, batch{values: values("v", 1), timestamp: 1000})
	if recs := readAll(w, "created", 0); p.LogAppendTime != -1 || len(recs) != 1 || recs[0].timestamp != 1000 {
		t.Errorf("log append time %d, records %+v; want -1 and the producer's timestamp", p.LogAppendTime, recs)
	}
}

func TestBatchesComeBackByteForByte(t *testing.T) {
	addr := onDisk(t)
	createTopic(t, addr, "bytes", 1, keptBatches...)
	w := dial(t, addr)
	sent := batch{values: values("v", 5), keys: values("k", 5), timestamp: 12345}.encode()
	for range 2 {
		p := produced(t, ask[*kmsg.ProduceResponse](w, produceRequest("bytes", 0, -1, sent)))
		wantCode(t, "produce", p.ErrorCode, nil)
	}
	got := fetched(t, ask[*kmsg.FetchResponse](w, fetchRequest("bytes", 0, 0))).RecordBatches
	if len(got) != 2*len(sent) {
		t.Fatalf("fetched %d bytes, want %d", len(got), 2*len(sent))
	}
	// The base offset (8 bytes) and the leader epoch (4 bytes at 12) are ours.
	for i, b := range [][]byte{got[:len(sent)], got[len(sent):]} {
		assert.True(t, bytes.Equal(b[8:12], sent[8:12]) && bytes.Equal(b[16:], sent[16:]), "batch %d was changed", i)
	}
}
