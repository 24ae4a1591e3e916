package handler_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
	"muster/internal/handler"
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
	must(t, err)
	for v := int16(3); v <= 13; v++ {
		req := w.produceRequest(v, 0)
		req.Topics[0].Topic, req.Topics[0].TopicID = "compacted", w.c.Image().Topic("compacted").ID
		req.Topics[0].Partitions[0].Records = b
		got := w.request(req).(*kmsg.ProduceResponse).Topics[0].Partitions[0]
		assert.MustEqual(t, got.ErrorCode, kerr.InvalidRecord.Code, "v%d: error", v)
		if v < 8 {
			continue // There is no place for more.
		}
		bad := got.ErrorRecords
		if len(bad) != 2 || bad[0].RelativeOffset != 1 || bad[1].RelativeOffset != 3 || bad[0].ErrorMessage == nil || got.ErrorMessage == nil {
			t.Errorf("v%d: %+v", v, got)
		}
	}
}

// sequenced is a batch of an idempotent producer.
func sequenced(t *testing.T, sequence int32) []byte {
	t.Helper()
	tmpl := record.PlainTemplate()
	tmpl.ProducerID, tmpl.ProducerEpoch, tmpl.BaseSequence = 7, 0, sequence
	b, err := record.Build(tmpl, []record.Record{{Value: []byte("v")}})
	must(t, err)
	return b
}

// What a request has for many partitions is written side by side, and what it has for
// one of them in order.
func TestAWideProduceKeepsTheOrderInEachPartition(t *testing.T) {
	const partitions, each = 200, 3
	for _, acks := range []int16{-1, 1} {
		w := newWorld(t)
		w.create(metadata.NewTopic{Name: "wide", Partitions: partitions, Replication: 1})
		req := w.produceRequest(9)
		req.Acks, req.Topics[0].Topic = acks, "wide"
		for i := range int32(partitions + 1) { // One is not there.
			for sequence := range int32(each) {
				p := kmsg.NewProduceRequestTopicPartition()
				p.Partition, p.Records = i, sequenced(t, sequence)
				req.Topics[0].Partitions = append(req.Topics[0].Partitions, p)
			}
		}
		got := w.request(req).(*kmsg.ProduceResponse).Topics[0].Partitions
		assert.MustEqual(t, len(got), len(req.Topics[0].Partitions), "answers")
		for at, p := range got {
			assert.MustEqual(t, p.Partition, req.Topics[0].Partitions[at].Partition, "answer %d is for partition", at)
			if p.Partition == partitions {
				assert.True(t, p.ErrorCode == kerr.UnknownTopicOrPartition.Code, "error %d for a partition that is not there", p.ErrorCode)
				continue
			}
			if want := int64(at % each); p.ErrorCode != 0 || p.BaseOffset != want {
				t.Fatalf("acks=%d, partition %d: error %d, offset %d, want %d", acks, p.Partition, p.ErrorCode, p.BaseOffset, want)
			}
		}
	}
}

// Small batches are all written before the first is made durable, so that they can be
// together. The disk need not wait for large ones.
func TestSmallBatchesOfARequestAreMadeDurableTogether(t *testing.T) {
	for _, c := range []struct {
		name  string
		value int
		ends  int64 // of the second partition, when the first is made durable
	}{{"small", 100, 1}, {"large", 40 << 10, 0}} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			req := w.produceRequest(9, 0, 1)
			for i := range req.Topics[0].Partitions {
				b, err := record.Build(record.PlainTemplate(), []record.Record{{Value: make([]byte, c.value)}})
				must(t, err)
				req.Topics[0].Partitions[i].Records = b
			}
			var ends []int64
			w.store.began = func() { ends = append(ends, w.m.Get("t", 1).LogEndOffset()) }
			for _, p := range w.request(req).(*kmsg.ProduceResponse).Topics[0].Partitions {
				assert.Equal(t, p.ErrorCode, 0, "partition %d: error", p.Partition)
			}
			assert.True(t, len(ends) == 2 && ends[0] == c.ends, "the second partition had %d records, want %d at first", ends, c.ends)
		})
	}
}

// The request's bytes are used again once it has been handled.
func TestAWideProduceHasWrittenEverythingWhenItWasHandled(t *testing.T) {
	const partitions = 1000
	w := newWorld(t)
	w.create(metadata.NewTopic{Name: "wide", Partitions: partitions, Replication: 1})
	req := w.produceRequest(9)
	req.Topics[0].Topic = "wide"
	for i := range int32(partitions) {
		p := kmsg.NewProduceRequestTopicPartition()
		p.Partition, p.Records = i, sequenced(t, 0)
		req.Topics[0].Partitions = append(req.Topics[0].Partitions, p)
	}
	frame := kmsg.NewRequestFormatter().AppendRequest(nil, req, 7)[4:]
	resp, err := w.h.Serve(t.Context(), handler.Origin{Listener: "L"}, frame)
	must(t, err)
	clear(frame)
	if resp.Pending() {
		<-resp.Ready()
	}
	for i := range int32(partitions) {
		if n := w.m.Get("wide", i).LogEndOffset(); n != 1 {
			t.Fatalf("partition %d has %d records", i, n)
		}
	}
}
