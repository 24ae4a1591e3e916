package handler_test

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
	"muster/internal/handler"
	"muster/internal/metadata"
	"muster/internal/protocol"
)

// words are what the requests below are made of: names that exist and names that
// do not, good and bad ones.
var words = []string{"", "t", "big", "none", "g", metadata.OffsetsTopic, metadata.ClusterMetadataTopic, "consumer", "range", "1", "retention.ms", "cleanup.policy", "compact", "1000", "a/b", "ü"}

// scribble fills a kmsg struct with words and small numbers.
func scribble(rng *rand.Rand, v reflect.Value, ids [][16]byte) {
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(rng.IntN(2) == 0)
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		numbers := []int64{-7, -2, -1, 0, 0, 1, 2, 3, 100}
		v.SetInt(numbers[rng.IntN(len(numbers))])
	case reflect.Uint8, reflect.Uint16, reflect.Uint32:
		v.SetUint(uint64(rng.UintN(256)))
	case reflect.Float64:
		v.SetFloat(rng.Float64())
	case reflect.String:
		v.SetString(words[rng.IntN(len(words))])
	case reflect.Array:
		v.Set(reflect.ValueOf(ids[rng.IntN(len(ids))]))
	case reflect.Slice:
		n := rng.IntN(4)
		if n == 0 && rng.IntN(2) == 0 {
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			scribble(rng, v.Index(i), ids)
		}
	case reflect.Pointer:
		if rng.IntN(2) == 0 {
			v.Set(reflect.New(v.Type().Elem()))
			scribble(rng, v.Elem(), ids)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if name := v.Type().Field(i).Name; name != "Version" && name != "UnknownTags" {
				scribble(rng, v.Field(i), ids)
			}
		}
	}
}

func TestEveryVersionOfEveryAPITakesWhateverIsInIt(t *testing.T) {
	w := newWorld(t)
	w.create(metadata.NewTopic{Name: "big", Partitions: 7, Replication: 1})
	ids := [][16]byte{{}, {1}, w.c.Image().Topic("t").ID, w.c.Image().Topic("big").ID}
	rng := rand.New(rand.NewPCG(1, 2))
	gone, cancel := context.WithCancel(t.Context())
	cancel() // So that no one waits.
	for _, e := range handler.Table() {
		for v := max(e.Min, e.ServedFrom); v <= e.Max; v++ {
			for range 100 {
				req := kmsg.RequestForKey(e.Key)
				scribble(rng, reflect.ValueOf(req).Elem(), ids)
				req.SetVersion(v)
				if got := w.answer(gone, req); got != nil && got.GetVersion() != v {
					t.Fatalf("%s v%d is answered in v%d", e.Name(), v, got.GetVersion())
				}
			}
		}
	}
}

// answer serves a request and decodes the answer, nil if there is none.
func (w *world) answer(ctx context.Context, req kmsg.Request) kmsg.Response {
	w.t.Helper()
	frame := kmsg.NewRequestFormatter(kmsg.FormatterClientID("test")).AppendRequest(nil, req, 7)[4:]
	resp, err := w.h.Serve(ctx, handler.Origin{Listener: "L", Host: "127.0.0.1"}, frame)
	if p, ok := req.(*kmsg.ProduceRequest); ok && p.Acks == 0 {
		return nil // It has no answer, and an error if it failed.
	}
	if err != nil {
		w.t.Fatalf("%s v%d: %v\n%+v", kmsg.NameForKey(req.Key()), req.GetVersion(), err, req)
	}
	return w.decode(req, resp)
}

func TestVersionsThatAreNotServedEndTheConnection(t *testing.T) {
	w := newWorld(t)
	for _, e := range handler.Table() {
		for _, v := range []int16{max(e.Min, e.ServedFrom) - 1, e.Max + 1, -1, 32767} {
			frame := binary.BigEndian.AppendUint16(nil, uint16(e.Key))
			frame = binary.BigEndian.AppendUint16(frame, uint16(v))
			frame = append(frame, 0, 0, 0, 7, 0xff, 0xff, 0, 0, 0, 0)
			resp, err := w.h.Serve(t.Context(), handler.Origin{Listener: "L"}, frame)
			if e.Key != protocol.KeyApiVersions {
				if err == nil {
					t.Errorf("%s v%d is answered", e.Name(), v)
				}
				continue
			}
			assert.Must(t, err, "ApiVersions v%d", v)
			got := w.decode(&kmsg.ApiVersionsRequest{Version: 0}, resp).(*kmsg.ApiVersionsResponse)
			assert.True(t, got.ErrorCode == kerr.UnsupportedVersion.Code && len(got.ApiKeys) == 1, "ApiVersions v%d: %+v", v, got)
		}
	}
}
