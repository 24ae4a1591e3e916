package protocol

import (
	"bytes"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
	"muster/internal/store"
)

func TestEncodeShareFetchIsReadByKmsgInEveryVersion(t *testing.T) {
	records, rack := bytes.Repeat([]byte("r"), 20<<10), "r"
	for version := int16(1); version <= 2; version++ {
		message := "why"
		resp := &ShareFetchResponse{ThrottleMillis: 3, ErrorCode: 4, ErrorMessage: &message, LockMillis: 30_000,
			Brokers: []kmsg.ShareFetchResponseNodeEndpoint{{NodeID: 1, Host: "h", Port: 9092}, {NodeID: 2, Host: "i", Port: 9093, Rack: &rack}},
			Topics: []ShareFetchTopic{
				{TopicID: [16]byte{1}, Partitions: []ShareFetchPartition{
					{Index: 3, Leader: LeaderHint{-1, -1}, Records: store.BytesRecords(records), Acquired: []kmsg.ShareFetchResponseTopicPartitionAcquiredRecord{
						{FirstOffset: 5, LastOffset: 7, DeliveryCount: 1}, {FirstOffset: 8, LastOffset: 8, DeliveryCount: 2},
					}},
					{Index: 4, ErrorCode: 6, Leader: LeaderHint{1, 5}},
				}},
				{TopicID: [16]byte{2}, Partitions: []ShareFetchPartition{
					{AcknowledgeErrorCode: 121, Records: store.FileRecords(memFile("0123456789"), 2, 5, func() {})},
				}},
			}}
		r := Request{Key: 78, Version: version, CorrelationID: 5}
		out, err := r.EncodeShareFetch(resp)
		assert.Must(t, err)
		assert.True(t, len(out.Parts) == 3, "large records are copied: %d parts", len(out.Parts))
		frame := flatten(t, out)
		got := kmsg.NewPtrShareFetchResponse()
		got.Version = version
		assert.Must(t, got.ReadFrom(frame[9:]))
		assert.True(t, bytes.Equal(got.AppendTo(nil), frame[9:]), "v%d: kmsg writes other bytes", version)
		a, b := got.Topics[0].Partitions, got.Topics[1].Partitions[0]
		assert.True(t, bytes.Equal(a[0].Records, records) && string(b.Records) == "23456", "records differ")
		assert.True(t, len(a[0].AcquiredRecords) == 2 && a[0].AcquiredRecords[1].DeliveryCount == 2 && a[1].ErrorCode == 6 && a[1].CurrentLeader.LeaderEpoch == 5, "%+v", a)
		assert.True(t, b.AcknowledgeErrorCode == 121 && got.AcquisitionLockTimeoutMillis == 30_000 && *got.ErrorMessage == "why" && *got.NodeEndpoints[1].Rack == "r", "%+v", got)
	}
}
