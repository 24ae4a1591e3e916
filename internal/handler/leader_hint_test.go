package handler_test

import (
	"log/slog"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
	"muster/internal/cluster"
	"muster/internal/handler"
	"muster/internal/metadata"
	"muster/internal/partition"
)

// fleet is a controller that says what it is told to say.
type fleet struct {
	*cluster.Controller
	image *metadata.Image
}

func (f *fleet) Image() *metadata.Image { return f.image }

// leadsNothing has no partitions.
type leadsNothing struct{}

func (leadsNothing) Get(string, int32) *partition.Partition { return nil }

// ledElsewhere returns broker 1 of two, which leads nothing: partitions 0 and 2 of t
// are led by broker 2, and partition 1 should be led by broker 1 itself.
func ledElsewhere(t *testing.T) *world {
	w := newWorld(t)
	image := w.c.Image()
	edit := image.Edit()
	edit.PutBroker(metadata.Broker{ID: 2, Rack: "r", Endpoints: []metadata.Endpoint{{Listener: "L", Host: "two", Port: 9092}, {Listener: "M", Host: "other", Port: 1}}})
	topic := *image.Topic("t")
	topic.Partitions = []metadata.Partition{{Leader: 2, LeaderEpoch: 7}, {Leader: 1, LeaderEpoch: 3}, {Leader: 2, LeaderEpoch: 7}}
	edit.PutTopic(topic)
	w.h = handler.New(handler.Options{NodeID: 1, Controller: &fleet{w.c, edit.Image()}, Partitions: leadsNothing{}, Groups: w.groups, Logger: slog.New(slog.DiscardHandler), SessionSlots: 10})
	return w
}

func TestProduceTellsWhoLeadsInstead(t *testing.T) {
	for v := int16(9); v <= 13; v++ {
		w := ledElsewhere(t)
		resp := w.request(w.produceRequest(v, 0, 1, 2)).(*kmsg.ProduceResponse)
		for i, p := range resp.Topics[0].Partitions {
			want := int32(-1)
			if v >= 10 && i != 1 {
				want = 2
			}
			if p.ErrorCode != kerr.NotLeaderForPartition.Code || p.CurrentLeader.LeaderID != want || want == 2 && p.CurrentLeader.LeaderEpoch != 7 {
				t.Errorf("v%d: partition %d: %+v", v, p.Partition, p)
			}
		}
		if v < 10 {
			continue
		}
		if len(resp.Brokers) != 1 || resp.Brokers[0].NodeID != 2 || resp.Brokers[0].Host != "two" || resp.Brokers[0].Port != 9092 || *resp.Brokers[0].Rack != "r" {
			t.Errorf("v%d: brokers %+v", v, resp.Brokers)
		}
	}
}

func fetchOf(w *world, version int16, epoch int32, parts ...int32) *kmsg.FetchRequest {
	req := kmsg.NewPtrFetchRequest()
	req.Version, req.MaxBytes, req.SessionEpoch = version, 1<<20, -1
	topic := kmsg.NewFetchRequestTopic()
	topic.Topic, topic.TopicID = "t", w.c.Image().Topic("t").ID
	for _, index := range parts {
		part := kmsg.NewFetchRequestTopicPartition()
		part.Partition, part.PartitionMaxBytes, part.CurrentLeaderEpoch = index, 1<<20, epoch
		topic.Partitions = append(topic.Partitions, part)
	}
	req.Topics = append(req.Topics, topic)
	return req
}

func TestFetchTellsWhoLeadsInstead(t *testing.T) {
	w := ledElsewhere(t)
	for v := int16(12); v <= 18; v++ {
		resp := w.request(fetchOf(w, v, -1, 0, 1, 2)).(*kmsg.FetchResponse)
		for i, p := range resp.Topics[0].Partitions {
			want := int32(-1)
			if v >= 16 && i != 1 {
				want = 2
			}
			if p.ErrorCode != kerr.NotLeaderForPartition.Code || p.CurrentLeader.LeaderID != want || want == 2 && p.CurrentLeader.LeaderEpoch != 7 {
				t.Errorf("v%d: partition %d: %+v", v, p.Partition, p)
			}
		}
		assert.Equal(t, len(resp.Brokers) == 1 && resp.Brokers[0].Host == "two", v >= 16, "v%d: brokers %+v", v, resp.Brokers)
	}
}

func TestAnOldLeaderEpochIsToldTheNewOne(t *testing.T) {
	w := newWorld(t)
	image := w.c.Image().Edit()
	topic := metadata.Topic{Name: "u", ID: metadata.TopicID{1}, Partitions: []metadata.Partition{{Leader: 1, LeaderEpoch: 4}}}
	image.PutTopic(topic)
	must(t, w.m.Apply(t.Context(), w.c.Image(), image.Image(), []string{"u"}))
	w.h = handler.New(handler.Options{NodeID: 1, Controller: &fleet{w.c, image.Image()}, Partitions: w.m, Groups: w.groups, Logger: slog.New(slog.DiscardHandler)})
	req := fetchOf(w, 17, 3, 0)
	req.Topics[0].TopicID = topic.ID
	resp := w.request(req).(*kmsg.FetchResponse)
	p := resp.Topics[0].Partitions[0]
	if p.ErrorCode != kerr.FencedLeaderEpoch.Code || p.CurrentLeader.LeaderID != 1 || p.CurrentLeader.LeaderEpoch != 4 || len(resp.Brokers) != 1 || resp.Brokers[0].Host != "h" {
		t.Errorf("%+v, brokers %+v", p, resp.Brokers)
	}
}
