package interop

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
)

// park sends a fetch that has to wait, and returns when the broker is about to
// begin with it: the answer to the request before it is there.
func park(w *wire, fetch *kmsg.FetchRequest, wait time.Duration) {
	w.t.Helper()
	fetch.MaxWaitMillis = int32(wait.Milliseconds())
	w.send(kmsg.NewPtrApiVersionsRequest())
	w.send(fetch)
	next[*kmsg.ApiVersionsResponse](w)
}

func TestFetchWakesOnAppend(t *testing.T) {
	const maxWait = 20 * time.Second
	for name, data := range map[string]string{"disk": t.TempDir(), "memory": ""} {
		t.Run(name, func(t *testing.T) {
			addr := startInProcess(t, data, nil).Addr()
			createTopic(t, addr, "wake", 3)
			reader, writer := dial(t, addr), dial(t, addr)
			for i := range 30 {
				partition, offset := int32(i%3), int64(i/3)
				fetch := fetchRequest("wake", offset, 0, 1, 2)
				for j := range fetch.Topics[0].Partitions {
					if int32(j) < partition { // These have one more already.
						fetch.Topics[0].Partitions[j].FetchOffset++
					}
				}
				began := time.Now()
				park(reader, fetch, maxWait)
				mustProduce(writer, "wake", partition, batch{values: []string{fmt.Sprint(i)}})
				got := next[*kmsg.FetchResponse](reader).Topics[0].Partitions[partition]
				if took := time.Since(began); took > maxWait/2 {
					t.Fatalf("the fetch was answered after %s, it waits for at most %s", took, maxWait)
				}
				wantValues(t, "the fetch that waited", decode(t, got.RecordBatches), []string{fmt.Sprint(i)})
			}
		})
	}
}

func TestFetchWaitsForMinBytesUntilMaxWait(t *testing.T) {
	addr := onDisk(t)
	createTopic(t, addr, "wait", 1)
	w := dial(t, addr)
	mustProduce(w, "wait", 0, batch{values: []string{"little"}})
	for _, tt := range []struct {
		minBytes int32
		maxWait  time.Duration
		waits    bool
	}{{0, 20 * time.Second, false}, {1, 20 * time.Second, false}, {1 << 20, 300 * time.Millisecond, true}} {
		fetch := fetchRequest("wait", 0, 0)
		fetch.MinBytes, fetch.MaxWaitMillis = tt.minBytes, int32(tt.maxWait.Milliseconds())
		began := time.Now()
		got := fetched(t, ask[*kmsg.FetchResponse](w, fetch))
		if took := time.Since(began); (took >= tt.maxWait) != tt.waits {
			t.Errorf("with min bytes of %d and max wait of %s the fetch took %s", tt.minBytes, tt.maxWait, took)
		}
		wantValues(t, "after the wait", decode(t, got.RecordBatches), []string{"little"})
	}
}

func TestFetchReturnsTheFirstBatchWhateverTheLimits(t *testing.T) {
	addr := onDisk(t)
	createTopic(t, addr, "first", 2)
	w := dial(t, addr)
	big := strings.Repeat("x", 100_000)
	for partition := range int32(2) {
		for range 2 {
			mustProduce(w, "first", partition, batch{values: []string{big}})
		}
	}
	fetch := fetchRequest("first", 0, 0, 1)
	fetch.MaxBytes = 1
	for i := range fetch.Topics[0].Partitions {
		fetch.Topics[0].Partitions[i].PartitionMaxBytes = 1
	}
	parts := ask[*kmsg.FetchResponse](w, fetch).Topics[0].Partitions
	wantValues(t, "the first partition", decode(t, parts[0].RecordBatches), []string{big})
	if n := len(parts[1].RecordBatches); n != 0 {
		t.Errorf("the second partition has %d bytes, above all limits", n)
	}
	// The partition's limit holds for all batches but the first.
	fetch = fetchRequest("first", 0, 0)
	fetch.Topics[0].Partitions[0].PartitionMaxBytes = 150_000
	got := fetched(t, ask[*kmsg.FetchResponse](w, fetch))
	if recs := decode(t, got.RecordBatches); len(recs) != 1 || len(got.RecordBatches) > 150_000 {
		t.Errorf("%d records in %d bytes, want 1 in at most 150000", len(recs), len(got.RecordBatches))
	}
}

func TestFetchChecksOffsetsAndEpochs(t *testing.T) {
	addr := onDisk(t)
	createTopic(t, addr, "range", 1)
	w := dial(t, addr)
	mustProduce(w, "range", 0, batch{values: values("a", 5)})
	mustProduce(w, "range", 0, batch{values: values("b", 5)})
	inside := int64(7)
	if keepsBatches() {
		inside = 5 // Where that batch begins.
	}
	tests := []struct {
		name   string
		topic  string
		offset int64
		epoch  int32
		want   error
		first  int64 // offset of the first record returned, -1 for none
	}{
		{"the start", "range", 0, -1, nil, 0},
		{"inside a batch", "range", 7, -1, nil, inside},
		{"the end", "range", 10, -1, nil, -1},
		{"above the end", "range", 11, -1, kerr.OffsetOutOfRange, -1},
		{"below the start", "range", -1, -1, kerr.OffsetOutOfRange, -1},
		{"an epoch from the future", "range", 0, 1000, kerr.UnknownLeaderEpoch, -1},
		{"an unknown topic", "nowhere", 0, -1, kerr.UnknownTopicOrPartition, -1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			fetch := fetchRequest(tt.topic, tt.offset, 0)
			fetch.Topics[0].Partitions[0].CurrentLeaderEpoch = tt.epoch
			p := fetched(t, ask[*kmsg.FetchResponse](w, fetch))
			wantCode(t, tt.name, p.ErrorCode, tt.want)
			first := int64(-1)
			if recs := decode(t, p.RecordBatches); len(recs) > 0 {
				first = recs[0].offset
			}
			assert.Equal(t, first, tt.first, "the first record has offset")
		})
	}
	byID := fetchRequest("", 0, 0)
	byID.Version, byID.Topics[0].TopicID = 13, [16]byte{1, 2, 3}
	wantCode(t, "an unknown topic id", fetched(t, ask[*kmsg.FetchResponse](w, byID)).ErrorCode, kerr.UnknownTopicID)
}

// fetchSession drives an incremental fetch session (KIP-227).
type fetchSession struct {
	w       *wire
	version int16
	topicID [16]byte
	id      int32
	epoch   int32
}

const sessionTopic = "session"

// request makes the session's next request, naming partitions with the offsets
// to fetch them from.
func (s *fetchSession) request(offsets map[int32]int64) *kmsg.FetchRequest {
	req := fetchRequest(sessionTopic, 0)
	req.Version, req.SessionID, req.SessionEpoch = s.version, s.id, s.epoch
	s.epoch++
	req.Topics[0].TopicID = s.topicID
	for p, offset := range offsets {
		req.Topics[0].Partitions = append(req.Topics[0].Partitions, fetchRequest("", offset, p).Topics[0].Partitions...)
	}
	if len(offsets) == 0 {
		req.Topics = nil
	}
	return req
}

// want sends a request and compares which partitions the answer has, with the
// values of their records.
func (s *fetchSession) want(what string, req *kmsg.FetchRequest, want map[int32][]string) {
	s.w.t.Helper()
	resp := ask[*kmsg.FetchResponse](s.w, req)
	wantCode(s.w.t, what, resp.ErrorCode, nil)
	if s.id == 0 {
		s.id = resp.SessionID
	}
	assert.MustTrue(s.w.t, resp.SessionID == s.id && s.id != 0, "%s: session id %d, want %d", what, resp.SessionID, s.id)
	got := map[int32][]string{}
	for _, topic := range resp.Topics {
		for _, p := range topic.Partitions {
			wantCode(s.w.t, what, p.ErrorCode, nil)
			got[p.Partition] = []string{}
			for _, r := range decode(s.w.t, p.RecordBatches) {
				got[p.Partition] = append(got[p.Partition], r.value)
			}
		}
	}
	assert.MustEqual(s.w.t, len(got), len(want), "%s: the answer has %v, want %v", what, got, want)
	for p := range want {
		if values, ok := got[p]; !ok || !slices.Equal(values, want[p]) {
			s.w.t.Fatalf("%s: the answer has %v, want %v", what, got, want)
		}
	}
}

// wantRefused checks a request that the session does not accept.
func (s *fetchSession) wantRefused(what string, req *kmsg.FetchRequest, want error) {
	s.w.t.Helper()
	resp := ask[*kmsg.FetchResponse](s.w, req)
	wantCode(s.w.t, what, resp.ErrorCode, want)
	assert.Equal(s.w.t, len(resp.Topics), 0, "%s: the answer has topics", what)
}

func TestFetchSessionsAreIncremental(t *testing.T) {
	for _, version := range []int16{7, 11, 12, 13, 16, 18} {
		t.Run(fmt.Sprintf("v%d", version), func(t *testing.T) {
			addr := onDisk(t)
			createTopic(t, addr, sessionTopic, 3)
			w := dial(t, addr)
			s := &fetchSession{w: w, version: version, topicID: topicID(w, sessionTopic)}
			put := func(partition int32, value string) {
				t.Helper()
				mustProduce(w, sessionTopic, partition, batch{values: []string{value}})
			}
			put(0, "a")
			s.want("the full fetch", s.request(map[int32]int64{0: 0, 1: 0}), map[int32][]string{0: {"a"}, 1: {}})
			s.want("moved on", s.request(map[int32]int64{0: 1}), nil)
			s.want("no change", s.request(nil), nil)
			put(1, "b")
			s.want("news of one partition", s.request(nil), map[int32][]string{1: {"b"}})
			s.want("again, as the offset did not move", s.request(nil), map[int32][]string{1: {"b"}})
			s.want("moved on", s.request(map[int32]int64{1: 1}), nil)
			put(2, "c")
			s.want("a partition that is not in the session", s.request(nil), nil)
			s.want("a partition joins", s.request(map[int32]int64{2: 0}), map[int32][]string{2: {"c"}})

			forget := s.request(nil)
			forgotten := kmsg.NewFetchRequestForgottenTopic()
			forgotten.Topic, forgotten.TopicID, forgotten.Partitions = sessionTopic, s.topicID, []int32{1, 2}
			forget.ForgottenTopics = append(forget.ForgottenTopics, forgotten)
			put(0, "d")
			put(1, "e")
			s.want("two partitions forgotten", forget, map[int32][]string{0: {"d"}})

			good := s.epoch
			s.epoch = good + 5
			s.wantRefused("an epoch from the future", s.request(nil), kerr.InvalidFetchSessionEpoch)
			s.epoch = good - 1
			s.wantRefused("an epoch of the past", s.request(nil), kerr.InvalidFetchSessionEpoch)
			s.epoch = good
			s.want("the right epoch still works", s.request(map[int32]int64{0: 2}), nil)

			stranger := &fetchSession{w: w, version: version, id: s.id + 1, epoch: 1}
			s.wantRefused("an unknown session", stranger.request(nil), kerr.FetchSessionIDNotFound)
			other := *s
			if other.version = 13; version >= 13 {
				other.version = 11
			}
			s.wantRefused("names and ids mixed", other.request(nil), kerr.FetchSessionTopicIDError)

			last := s.request(map[int32]int64{0: 0})
			last.SessionEpoch = -1
			if resp := ask[*kmsg.FetchResponse](w, last); resp.ErrorCode != 0 || resp.SessionID != 0 {
				t.Errorf("the end of a session: error code %d, session id %d", resp.ErrorCode, resp.SessionID)
			}
			s.wantRefused("after the end", s.request(nil), kerr.FetchSessionIDNotFound)
		})
	}
}

func TestFetchInASessionWakesOnAppend(t *testing.T) {
	addr := onDisk(t)
	createTopic(t, addr, sessionTopic, 1)
	w, writer := dial(t, addr), dial(t, addr)
	s := &fetchSession{w: w, version: 13, topicID: topicID(w, sessionTopic)}
	s.want("the full fetch", s.request(map[int32]int64{0: 0}), map[int32][]string{0: {}})
	park(w, s.request(nil), 20*time.Second)
	began := time.Now()
	mustProduce(writer, sessionTopic, 0, batch{values: []string{"news"}})
	got := fetched(t, next[*kmsg.FetchResponse](w))
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("answered after %s", took)
	}
	wantValues(t, "the fetch that waited", decode(t, got.RecordBatches), []string{"news"})
}
