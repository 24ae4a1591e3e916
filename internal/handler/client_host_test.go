package handler_test

import (
	"testing"
	"testing/synctest"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
	"muster/internal/metadata"
	"muster/internal/record"
)

// Kafka has a slash before a client's host, in DescribeGroups and in its records,
// and so have the tools that read them.
func TestAClientsHostIsToldAndStoredAsKafkaDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		join := &kmsg.JoinGroupRequest{Version: 3, Group: "g", ProtocolType: "consumer", SessionTimeoutMillis: 10_000, RebalanceTimeoutMillis: 10_000, Protocols: []kmsg.JoinGroupRequestProtocol{{Name: "range"}}}
		joined := w.request(join).(*kmsg.JoinGroupResponse)
		w.request(&kmsg.SyncGroupRequest{Version: 3, Group: "g", Generation: joined.Generation, MemberID: joined.MemberID})
		described := w.request(&kmsg.DescribeGroupsRequest{Version: 4, Groups: []string{"g"}}).(*kmsg.DescribeGroupsResponse).Groups[0]
		assert.True(t, len(described.Members) == 1 && described.Members[0].ClientHost == "/127.0.0.1", "described: %+v", described.Members)
		assert.Equal(t, w.storedHost(t, "g"), "/127.0.0.1", "stored")
	})
}

// storedHost returns the host of a group's only member, as it is in the group's
// newest record.
func (w *world) storedHost(t *testing.T, group string) (host string) {
	for i := range int32(3) {
		req := kmsg.NewPtrFetchRequest()
		req.Version, req.MaxBytes = 11, 1<<20
		req.Topics = []kmsg.FetchRequestTopic{{Topic: metadata.OffsetsTopic, Partitions: []kmsg.FetchRequestTopicPartition{{Partition: i, CurrentLeaderEpoch: -1, PartitionMaxBytes: 1 << 20}}}}
		b := w.request(req).(*kmsg.FetchResponse).Topics[0].Partitions[0].RecordBatches
		for len(b) > 0 {
			batch, rest, err := record.Next(b)
			must(t, err)
			err = batch.Each(func(r *record.Record) error {
				key, value := kmsg.NewGroupMetadataKey(), kmsg.NewGroupMetadataValue()
				if key.ReadFrom(r.Key) != nil || key.Group != group || value.ReadFrom(r.Value) != nil || len(value.Members) != 1 {
					return nil
				}
				host = value.Members[0].ClientHost
				return nil
			})
			must(t, err)
			b = rest
		}
	}
	return host
}
