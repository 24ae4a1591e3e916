package shown

import (
	"log/slog"
	"testing"

	"muster/internal/handler"
	"muster/internal/metadata"
	"muster/internal/metadata/config"
	"muster/internal/redistest"
	"muster/internal/store"
)

// Only where offsets have gaps are records counted, and each count is that of its place.
func TestEachPlaceHasItsOwnCount(t *testing.T) {
	client, prefix := redistest.Single(t).Client(t), redistest.Prefix(t)
	for partition, n := range []int{3, 1} {
		key := prefix + ":orders:" + string(rune('0'+partition))
		for range n {
			if err := client.Do(t.Context(), client.B().Xadd().Key(key).Id("*").FieldValue().FieldValue("v", "x").Build()).Error(); err != nil {
				t.Fatal(err)
			}
		}
	}
	cfg, err := config.NewBroker(map[string]string{"muster.store": "redis"})
	if err != nil {
		t.Fatal(err)
	}
	edit := metadata.NewImage(cfg, metadata.Broker{ID: 1}).Edit()
	edit.PutTopic(metadata.Topic{Name: "orders", ID: metadata.TopicID{1}, Set: map[string]string{"muster.redis.layout": "stream"}, Partitions: make([]metadata.Partition, 2)})
	edit.PutTopic(metadata.Topic{Name: "dense", ID: metadata.TopicID{2}, Partitions: make([]metadata.Partition, 1)})
	image := edit.Image()
	n := &Groups{Options: Options{Client: client, Prefix: prefix, Logger: slog.New(slog.DiscardHandler), Image: func() *metadata.Image { return image }}}
	got := n.Counter().CountFrom(t.Context(), []handler.Place{
		{TopicPartition: store.TopicPartition{Topic: "dense"}},
		{TopicPartition: store.TopicPartition{Topic: "orders", Partition: 1}},
		{TopicPartition: store.TopicPartition{Topic: "gone"}},
		{TopicPartition: store.TopicPartition{Topic: "orders", Partition: 0}},
	})
	if len(got) != 4 || got[0] != nil || got[2] != nil || got[1] == nil || got[3] == nil {
		t.Fatalf("counted are %v", got)
	}
	if got[1].Records != 1 || got[3].Records != 3 || got[1].AtLeast || got[3].AtLeast {
		t.Errorf("there are %+v and %+v", got[1], got[3])
	}
}
