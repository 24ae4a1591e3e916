package handler_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/metadata"
	"muster/internal/record"
)

func TestProduceNamesTheRecordsThatARefusalIsAbout(t *testing.T) {
	w := newWorld(t)
	w.create(metadata.NewTopic{Name: "compacted", Partitions: 1, Replication: 1, Set: map[string]string{"cleanup.policy": "compact"}})
	var recs []record.Record
	for i, key := range [][]byte{[]byte("a"), nil, []byte("b"), nil} {
		recs = append(recs, record.Record{OffsetDelta: int32(i), Key: key})
	}
	b, err := record.Build(record.PlainTemplate(), recs)
	if err != nil {
		t.Fatal(err)
	}
	for v := int16(3); v <= 13; v++ {
		req := w.produceRequest(v, 0)
		req.Topics[0].Topic, req.Topics[0].TopicID = "compacted", w.c.Image().Topic("compacted").ID
		req.Topics[0].Partitions[0].Records = b
		got := w.request(req).(*kmsg.ProduceResponse).Topics[0].Partitions[0]
		if got.ErrorCode != kerr.InvalidRecord.Code {
			t.Fatalf("v%d: error %d", v, got.ErrorCode)
		}
		if v < 8 {
			continue // There is no place for more.
		}
		bad := got.ErrorRecords
		if len(bad) != 2 || bad[0].RelativeOffset != 1 || bad[1].RelativeOffset != 3 || bad[0].ErrorMessage == nil || got.ErrorMessage == nil {
			t.Errorf("v%d: %+v", v, got)
		}
	}
}
