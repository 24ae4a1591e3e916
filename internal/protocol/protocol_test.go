package protocol

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
	"muster/internal/store"
)

// fill puts random content into a kmsg struct.
func fill(rng *rand.Rand, v reflect.Value, depth int) {
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(rng.IntN(2) == 0)
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(int64(int8(rng.Uint32())))
	case reflect.Uint8, reflect.Uint16, reflect.Uint32:
		v.SetUint(uint64(rng.UintN(256)))
	case reflect.Float64:
		v.SetFloat(rng.Float64())
	case reflect.String:
		v.SetString(string(bytes.Repeat([]byte("x"), rng.IntN(5))))
	case reflect.Array:
		for i := range v.Len() {
			fill(rng, v.Index(i), depth)
		}
	case reflect.Slice:
		n := rng.IntN(4)
		if depth > 4 {
			n = 0
		}
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			fill(rng, v.Index(i), depth+1)
		}
	case reflect.Pointer:
		if rng.IntN(2) == 0 {
			v.SetZero()
			return
		}
		v.Set(reflect.New(v.Type().Elem()))
		fill(rng, v.Elem(), depth+1)
	case reflect.Struct:
		for i := range v.NumField() {
			switch v.Type().Field(i).Name {
			case "Version", "UnknownTags":
			default:
				fill(rng, v.Field(i), depth)
			}
		}
	}
}

func eachRequest(fn func(key, version int16)) {
	for key := range int16(100) {
		req := NewRequest(key)
		if req == nil {
			continue
		}
		for version := range req.MaxVersion() + 1 {
			fn(key, version)
		}
	}
}

func TestShapesCoverExactlyWhatKmsgEncodes(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	eachRequest(func(key, version int16) {
		for range 20 {
			req := NewRequest(key)
			req.SetVersion(version)
			fill(rng, reflect.ValueOf(req).Elem(), 0)
			req.SetVersion(version)
			body := req.AppendTo(nil)
			rest, err := shapeOf(key, version).walk(body, new(int))
			if err != nil || len(rest) != 0 {
				t.Errorf("%s v%d: %d bytes left of %d, %v", kmsg.NameForKey(key), version, len(rest), len(body), err)
				return
			}
		}
	})
}

func TestDecodeGivesBackWhatWasEncoded(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	eachRequest(func(key, version int16) {
		req := NewRequest(key)
		req.SetVersion(version)
		fill(rng, reflect.ValueOf(req).Elem(), 0)
		req.SetVersion(version)
		f := kmsg.NewRequestFormatter(kmsg.FormatterClientID("me"))
		r, err := ParseHeader(f.AppendRequest(nil, req, 99)[4:])
		assert.Must(t, err)
		if err := r.Open(); err != nil {
			t.Fatalf("%s v%d: %v", kmsg.NameForKey(key), version, err)
		}
		got, err := r.Decode()
		if err != nil {
			t.Fatalf("%s v%d: %v", kmsg.NameForKey(key), version, err)
		}
		if r.ClientID != "me" || r.CorrelationID != 99 || !bytes.Equal(got.AppendTo(nil), req.AppendTo(nil)) {
			t.Errorf("%s v%d: differs", kmsg.NameForKey(key), version)
		}
	})
}

func TestAnArrayLongerThanTheFrameIsRefusedBeforeItIsAllocated(t *testing.T) {
	// Metadata v9: a compact array of topics with 2^31 elements.
	r := Request{Key: 3, Version: 9, Body: []byte{0xff, 0xff, 0xff, 0xff, 0x07, 0, 0, 0, 0}}
	if _, err := r.Decode(); err == nil {
		t.Error("accepted")
	}
	// And a tag count of 2^31 in an otherwise good request.
	r = Request{Key: 3, Version: 9, Body: []byte{1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x07}}
	if _, err := r.Decode(); err == nil {
		t.Error("accepted")
	}
}

func TestBytesAfterARequestAreIgnored(t *testing.T) {
	// Metadata v13 of all topics, as librdkafka 2.16 sends it: the length of the
	// array, which is one byte here, takes four.
	r := Request{Key: 3, Version: 13, Body: []byte{0, 0, 0, 0, 1, 0, 0}}
	req, err := r.Decode()
	assert.Must(t, err)
	if m := req.(*kmsg.MetadataRequest); m.Topics != nil || m.AllowAutoTopicCreation {
		t.Errorf("decoded as %+v", m)
	}
}

func TestParseProduceReadsWhatKmsgWrites(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for version := int16(3); version <= 13; version++ {
		for range 50 {
			want := kmsg.NewPtrProduceRequest()
			fill(rng, reflect.ValueOf(want).Elem(), 0)
			want.Version = version
			r := Request{Version: version, Body: want.AppendTo(nil)}
			checkProduce(t, want, &r)
		}
	}
}

func TestATransactionalIDIsNoLongerThanOlderVersionsCanSay(t *testing.T) {
	for n, good := range map[int]bool{math.MaxInt16: true, math.MaxInt16 + 1: false} {
		id := strings.Repeat("x", n)
		req := kmsg.ProduceRequest{Version: 9, TransactionID: &id}
		r := Request{Version: 9, Body: req.AppendTo(nil)}
		if got, err := r.ParseProduce(); (err == nil) != good || good && *got.TransactionalID != id {
			t.Errorf("%d letters: %v", n, err)
		}
	}
}

// A group's records, in which a longer name could not be read again, are one reason.
func TestNoStringIsLongerThanOlderVersionsCanSay(t *testing.T) {
	for n, good := range map[int]bool{math.MaxInt16: true, math.MaxInt16 + 1: false, math.MaxUint16 + 5: false} {
		text := strings.Repeat("x", n)
		commit := kmsg.NewPtrOffsetCommitRequest()
		commit.Version, commit.Group = 8, text
		join := kmsg.NewPtrJoinGroupRequest()
		join.Version, join.InstanceID = 9, &text
		for _, req := range []kmsg.Request{commit, join} {
			r := Request{Key: req.Key(), Version: req.GetVersion(), Body: req.AppendTo(nil)}
			if _, err := r.Decode(); (err == nil) != good {
				t.Errorf("key %d with %d letters: %v", r.Key, n, err)
			}
		}
		join.InstanceID, join.Protocols = nil, []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: []byte(text)}}
		r := Request{Key: join.Key(), Version: join.Version, Body: join.AppendTo(nil)}
		if _, err := r.Decode(); err != nil {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}

func checkProduce(t *testing.T, want *kmsg.ProduceRequest, r *Request) {
	t.Helper()
	got, err := r.ParseProduce()
	assert.Must(t, err)
	if got.Acks != want.Acks || got.TimeoutMillis != want.TimeoutMillis || !reflect.DeepEqual(got.TransactionalID, want.TransactionID) {
		t.Fatalf("v%d: head differs: %+v", r.Version, got)
	}
	for _, topic := range want.Topics {
		for i, part := range topic.Partitions {
			p, ok := got.Next()
			if !ok || p.First != (i == 0) || p.Index != part.Partition || !bytes.Equal(p.Records, part.Records) {
				t.Fatalf("v%d: got %+v %v, want %+v", r.Version, p, ok, part)
			}
			assert.MustTrue(t, (r.Version >= 13 || p.Topic == topic.Topic) && (r.Version < 13 || p.TopicID == topic.TopicID), "v%d: topic differs", r.Version)
		}
	}
	if p, ok := got.Next(); ok || got.Err() != nil {
		t.Fatalf("v%d: after the end: %+v %v", r.Version, p, got.Err())
	}
}

func TestEncodeFetchIsReadByKmsgInEveryVersion(t *testing.T) {
	records := bytes.Repeat([]byte("r"), 20<<10)
	for version := int16(4); version <= 18; version++ {
		resp := &FetchResponse{SessionID: 7, Brokers: []FetchBroker{{ID: 1, Host: "h", Port: 9092}, {ID: 2, Host: "i", Port: 9093, Rack: "r"}}, Topics: []FetchTopic{
			{Topic: "a", TopicID: [16]byte{1}, Partitions: []FetchPartition{
				{Index: 3, HighWatermark: 10, LastStableOffset: 9, LogStartOffset: 2, Records: store.BytesRecords(records)},
				{Index: 4, ErrorCode: 1, HighWatermark: -1, LastStableOffset: -1, LogStartOffset: -1, NoAborted: true},
			}},
			{Topic: "bb", TopicID: [16]byte{2}, Partitions: []FetchPartition{
				{Index: 0, Records: store.FileRecords(memFile("0123456789"), 2, 5, func() {}), Diverging: &DivergingEpoch{3, 44}, Leader: &LeaderHint{1, 5}},
			}},
		}}
		r := Request{Key: KeyFetch, Version: version, CorrelationID: 5}
		out, err := r.EncodeFetch(resp)
		assert.Must(t, err)
		checkFetch(t, version, flatten(t, out), records)
	}
}

type memFile string

func (f memFile) ReadAt(b []byte, off int64) (int, error) { return copy(b, f[off:]), nil }
func (memFile) Fd() (uintptr, bool)                       { return 0, false }

func flatten(t *testing.T, r *Response) []byte {
	t.Helper()
	var b []byte
	for _, p := range r.Parts {
		if p.Bytes == nil {
			loaded, err := p.Records.Load()
			assert.Must(t, err)
			p.Bytes = loaded
		}
		b = append(b, p.Bytes...)
	}
	return b
}

func checkFetch(t *testing.T, version int16, frame, records []byte) {
	t.Helper()
	got := kmsg.NewPtrFetchResponse()
	got.Version = version
	head := 8
	if version >= 12 {
		head = 9
	}
	if n := int(frame[0])<<24 | int(frame[1])<<16 | int(frame[2])<<8 | int(frame[3]); n != len(frame)-4 {
		t.Fatalf("v%d: length %d of %d", version, n, len(frame)-4)
	}
	assert.Must(t, got.ReadFrom(frame[head:]), "v%d", version)
	a, b := got.Topics[0].Partitions, got.Topics[1].Partitions[0]
	assert.MustTrue(t, bytes.Equal(a[0].RecordBatches, records) && string(b.RecordBatches) == "23456", "v%d: records differ", version)
	if a[0].Partition != 3 || a[0].HighWatermark != 10 || a[0].LastStableOffset != 9 || a[1].ErrorCode != 1 || a[1].AbortedTransactions != nil {
		t.Fatalf("v%d: got %+v", version, a)
	}
	if version >= 12 && (b.DivergingEpoch.Epoch != 3 || b.DivergingEpoch.EndOffset != 44 || b.CurrentLeader.LeaderID != 1 || b.CurrentLeader.LeaderEpoch != 5) {
		t.Fatalf("v%d: tags %+v", version, b)
	}
	if told := len(got.Brokers) == 2 && got.Brokers[0].Port == 9092 && got.Brokers[0].Rack == nil && *got.Brokers[1].Rack == "r"; told != (version >= 16) {
		t.Fatalf("v%d: brokers %+v", version, got.Brokers)
	}
	assert.MustTrue(t, bytes.Equal(got.AppendTo(nil), frame[head:]), "v%d: kmsg writes other bytes", version)
}

func FuzzRequest(f *testing.F) {
	rng := rand.New(rand.NewPCG(7, 8))
	format := kmsg.NewRequestFormatter(kmsg.FormatterClientID("fuzz"))
	eachRequest(func(key, version int16) {
		req := NewRequest(key)
		req.SetVersion(version)
		fill(rng, reflect.ValueOf(req).Elem(), 0)
		req.SetVersion(version)
		f.Add(format.AppendRequest(nil, req, 1)[4:])
	})
	f.Fuzz(func(t *testing.T, frame []byte) {
		r, err := ParseHeader(frame)
		if err != nil {
			return
		}
		req := NewRequest(r.Key)
		if req == nil || r.Version < 0 || r.Version > req.MaxVersion() || r.Open() != nil {
			return
		}
		if r.Key == KeyProduce && r.Version >= 3 {
			p, err := r.ParseProduce()
			for ok := err == nil; ok; {
				_, ok = p.Next()
			}
			return
		}
		if got, err := r.Decode(); err == nil {
			_ = fmt.Sprint(got.Key())
		}
	})
}
