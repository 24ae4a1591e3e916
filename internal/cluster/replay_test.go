package cluster

import (
	"testing"

	"muster/internal/auth"
	"muster/internal/metadata"
	"muster/internal/metadata/config"
	"muster/internal/record"
)

func FuzzApply(f *testing.F) {
	for _, r := range []record.Record{
		clusterRecord("id", 3), producerIDsRecord(1000), configRecord(map[string]string{"num.partitions": "3"}),
		topicRecord(metadata.Topic{Name: "t", Partitions: make([]metadata.Partition, 2)}, true), topicTombstone("t"),
		topicRecord(metadata.Topic{Name: "t", Partitions: make([]metadata.Partition, 2), Preferred: []int32{-1, 3, 4}}, true),
		brokerRecord(metadata.Broker{ID: 3, Endpoints: []metadata.Endpoint{{Listener: "PLAINTEXT", Host: "h", Port: 1}}}), brokerTombstone(3),
		deletingRecord("t", deletingValue{By: 1, Partitions: 2}), deletingTombstone("t"),
		groupRecord("g/h", map[string]string{"consumer.heartbeat.interval.ms": "6000"}), groupRecord("g", nil),
		userRecord("a", []metadata.Credential{{Hash: 1, Salt: []byte("salt"), Iterations: 4096, StoredKey: make([]byte, 32), ServerKey: make([]byte, 32)}}), userRecord("a", nil),
		ruleRecord(auth.Rule{Type: auth.Topic, Pattern: auth.Literal, Name: "t", Principal: "User:a", Host: "*", Operation: auth.Read, Permission: auth.Allow}), tombstone(keyRulePrefix + "x"),
		quotasRecord(metadata.QuotaEntity{User: metadata.Some("a/b"), ClientID: metadata.Default()}, map[string]float64{metadata.ProducerByteRate: 1}), quotasRecord(metadata.QuotaEntity{IP: metadata.Some("::1")}, nil),
	} {
		f.Add(r.Key, r.Value)
	}
	f.Fuzz(func(t *testing.T, key, value []byte) {
		s := newState(1)
		_ = s.apply(&record.Record{Key: key, Value: value}, metadata.NewImage(&config.Broker{}, metadata.Broker{ID: 1}).Edit())
	})
}
