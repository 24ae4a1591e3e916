package cluster

import (
	"testing"

	"muster/internal/metadata"
	"muster/internal/metadata/config"
	"muster/internal/record"
)

func FuzzApply(f *testing.F) {
	for _, r := range []record.Record{
		clusterRecord("id", 3), producerIDsRecord(1000), configRecord(map[string]string{"num.partitions": "3"}),
		topicRecord(metadata.Topic{Name: "t", Partitions: make([]metadata.Partition, 2)}), topicTombstone("t"),
	} {
		f.Add(r.Key, r.Value)
	}
	defaults, err := config.NewBroker(nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, key, value []byte) {
		s := &replayed{edit: metadata.NewImage("", metadata.Broker{ID: 1}, defaults).Edit()}
		_ = s.apply(&record.Record{Key: key, Value: value})
	})
}
