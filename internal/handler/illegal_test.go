package handler_test

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
	"muster/internal/handler"
)

// filled gives every list of a request one entry, so that its answer has one too.
func filled(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.Type().Elem().Kind() == reflect.String {
			v.Set(reflect.New(v.Type().Elem()))
			v.Elem().SetString("name")
		}
	case reflect.String:
		v.SetString("name")
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte{})
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		filled(v.Index(0))
	case reflect.Struct:
		if d, ok := v.Addr().Interface().(interface{ Default() }); ok {
			d.Default()
		}
		for i := range v.NumField() {
			if name := v.Type().Field(i).Name; name != "Version" && name != "UnknownTags" {
				filled(v.Field(i))
			}
		}
	}
}

func TestEveryRequestInTheMiddleOfALoginIsAnsweredWithIllegalState(t *testing.T) {
	w := newWorld(t)
	for _, e := range handler.Table() {
		for version := max(e.Min, e.ServedFrom); version <= e.Max; version++ {
			req := kmsg.RequestForKey(e.Key)
			filled(reflect.ValueOf(req).Elem())
			req.SetVersion(version)
			what := fmt.Sprintf("%s v%d", e.Name(), version)
			origin := handler.Origin{Listener: "L", Session: &fakeSession{}, Illegal: true}
			resp := w.from(origin, req)
			if resp == nil {
				t.Errorf("%s has no answer", what)
				continue
			}
			told := map[int16]bool{}
			codes(reflect.ValueOf(resp), told)
			if e.Key == 34 || e.Key == 35 && version < 3 {
				continue // Their answers have errors for partitions or folders alone.
			}
			if delete(told, 0); len(told) != 1 || !told[kerr.IllegalSaslState.Code] {
				t.Errorf("%s: %+v", what, resp)
			}
		}
	}
}

func TestARequestInTheMiddleOfALoginIsAnsweredForEachThingItNames(t *testing.T) {
	w := newWorld(t)
	origin := handler.Origin{Listener: "L", Session: &fakeSession{}, Illegal: true}
	resp := w.from(origin, &kmsg.MetadataRequest{Version: 5, Topics: []kmsg.MetadataRequestTopic{{Topic: kmsg.StringPtr("a")}, {Topic: kmsg.StringPtr("b")}}}).(*kmsg.MetadataResponse)
	assert.True(t, len(resp.Topics) == 2 && *resp.Topics[1].Topic == "b" && resp.Topics[0].ErrorCode == 34 && len(resp.Brokers) == 0, "%+v", resp)
	for _, topic := range []kmsg.ProduceRequestTopic{{Topic: "a", Partitions: []kmsg.ProduceRequestTopicPartition{{Partition: 7, Records: []byte{}}}}} {
		got := w.from(origin, &kmsg.ProduceRequest{Version: 5, Acks: 1, Topics: []kmsg.ProduceRequestTopic{topic}}).(*kmsg.ProduceResponse)
		if len(got.Topics) != 1 || got.Topics[0].Topic != "a" || got.Topics[0].Partitions[0].Partition != 7 || got.Topics[0].Partitions[0].ErrorCode != 34 {
			t.Errorf("%+v", got)
		}
	}
	of := &kmsg.OffsetFetchRequest{Version: 5, Group: "g", Topics: []kmsg.OffsetFetchRequestTopic{{Topic: "a", Partitions: []int32{3, 4}}}}
	if got := w.from(origin, of).(*kmsg.OffsetFetchResponse); got.ErrorCode != 34 || len(got.Topics) != 1 || got.Topics[0].Partitions[1].Partition != 4 || got.Topics[0].Partitions[1].ErrorCode != 34 {
		t.Errorf("%+v", got)
	}
	assert.True(t, w.c.Image().Topic("name") == nil, "a request in the middle of a login was served")
}
