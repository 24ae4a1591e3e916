package interop

import (
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
)

// listOffset asks for the offset of a timestamp, which may be a special one.
func listOffset(w *wire, version int16, topic string, timestamp int64) kmsg.ListOffsetsResponseTopicPartition {
	w.t.Helper()
	req := kmsg.NewPtrListOffsetsRequest()
	req.Version, req.ReplicaID = version, -1
	t := kmsg.NewListOffsetsRequestTopic()
	t.Topic = topic
	p := kmsg.NewListOffsetsRequestTopicPartition()
	p.Timestamp, p.CurrentLeaderEpoch = timestamp, -1
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	return ask[*kmsg.ListOffsetsResponse](w, req).Topics[0].Partitions[0]
}

// deleteRecords deletes the records of partition 0 before an offset.
func deleteRecords(w *wire, topic string, offset int64) kmsg.DeleteRecordsResponseTopicPartition {
	w.t.Helper()
	req := kmsg.NewPtrDeleteRecordsRequest()
	req.Version, req.TimeoutMillis = 2, 30_000
	t := kmsg.NewDeleteRecordsRequestTopic()
	t.Topic = topic
	p := kmsg.NewDeleteRecordsRequestTopicPartition()
	p.Offset = offset
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	return ask[*kmsg.DeleteRecordsResponse](w, req).Topics[0].Partitions[0]
}

func TestListOffsetsFindsTimestamps(t *testing.T) {
	for name, data := range map[string]string{"disk": t.TempDir(), "memory": ""} {
		t.Run(name, func(t *testing.T) {
			addr := startInProcess(t, data, nil).Addr()
			createTopic(t, addr, "times", 1)
			w := dial(t, addr)
			// Offsets 0–4 at 1000–1004, 5–7 at 5000–5002 and 8–9 at 3000–3001.
			mustProduce(w, "times", 0, batch{values: values("a", 5), timestamp: 1000})
			mustProduce(w, "times", 0, batch{values: values("b", 3), timestamp: 5000})
			mustProduce(w, "times", 0, batch{values: values("c", 2), timestamp: 3000})
			tests := []struct {
				name      string
				version   int16
				timestamp int64
				want      error
				offset    int64
				at        int64
			}{
				{"latest", 1, -1, nil, 10, -1},
				{"earliest", 1, -2, nil, 0, -1},
				{"latest", 11, -1, nil, 10, -1},
				{"earliest", 11, -2, nil, 0, -1},
				{"largest timestamp", 7, -3, nil, 7, 5002},
				{"largest timestamp before v7", 6, -3, kerr.UnsupportedVersion, -1, -1},
				{"earliest local", 8, -4, nil, 0, -1},
				{"earliest local before v8", 7, -4, kerr.UnsupportedVersion, -1, -1},
				{"latest tiered", 9, -5, nil, -1, -1},
				{"earliest pending upload", 11, -6, nil, -1, -1},
				{"no such special timestamp", 11, -7, kerr.UnsupportedVersion, -1, -1},
				{"the first", 7, 1000, nil, 0, 1000},
				{"before the first", 7, 1, nil, 0, 1000},
				{"inside a batch", 7, 1003, nil, 3, 1003},
				{"between batches", 7, 1005, nil, 5, 5000},
				{"out of order", 7, 3000, nil, 5, 5000},
				{"the last", 7, 5002, nil, 7, 5002},
				{"after the last", 7, 5003, nil, -1, -1},
			}
			for _, tt := range tests {
				t.Run(fmt.Sprintf("%s v%d", tt.name, tt.version), func(t *testing.T) {
					p := listOffset(w, tt.version, "times", tt.timestamp)
					wantCode(t, tt.name, p.ErrorCode, tt.want)
					assert.True(t, p.Offset == tt.offset && p.Timestamp == tt.at, "offset %d at %d, want %d at %d", p.Offset, p.Timestamp, tt.offset, tt.at)
				})
			}
			wantCode(t, "an unknown topic", listOffset(w, 7, "nowhere", -1).ErrorCode, kerr.UnknownTopicOrPartition)
		})
	}
}

func TestDeleteRecordsMovesTheLogStart(t *testing.T) {
	data := t.TempDir()
	b := serve(t, data, steadyLease...)
	createTopic(t, b.addr(), "trimmed", 1, "segment.bytes", "16384")
	w := dial(t, b.addr())
	for i := range 20 {
		mustProduce(w, "trimmed", 0, batch{values: []string{fmt.Sprintf("%02d %s", i, strings.Repeat("x", 5000))}})
	}
	for _, tt := range []struct {
		name   string
		offset int64
		want   error
		low    int64
	}{
		{"above the end", 21, kerr.OffsetOutOfRange, -1},
		{"nothing", 0, nil, 0},
		{"some", 7, nil, 7},
		{"fewer than before", 3, nil, 7},
	} {
		p := deleteRecords(w, "trimmed", tt.offset)
		wantCode(t, tt.name, p.ErrorCode, tt.want)
		assert.Equal(t, p.LowWatermark, tt.low, "%s: low watermark", tt.name)
	}
	wantCode(t, "an unknown topic", deleteRecords(w, "nowhere", 0).ErrorCode, kerr.UnknownTopicOrPartition)
	check := func(w *wire, start int64) {
		t.Helper()
		assert.Equal(t, listOffset(w, 7, "trimmed", -2).Offset, start, "the log starts")
		p := fetched(t, ask[*kmsg.FetchResponse](w, fetchRequest("trimmed", start-1, 0)))
		wantCode(t, "fetch below the log start", p.ErrorCode, kerr.OffsetOutOfRange)
		if n := len(readFrom(w, "trimmed", 0, start)); n != int(20-start) {
			t.Errorf("%d records are left, want %d", n, 20-start)
		}
	}
	check(w, 7)
	b.kill()
	b = serve(t, data, steadyLease...)
	w = dial(t, b.addr())
	check(w, 7)
	if p := deleteRecords(w, "trimmed", -1); p.ErrorCode != 0 || p.LowWatermark != 20 {
		t.Errorf("delete all: error code %d, low watermark %d", p.ErrorCode, p.LowWatermark)
	}
	check(w, 20)
	if offset := mustProduce(w, "trimmed", 0, batch{values: []string{"more"}}); offset != 20 {
		t.Errorf("the next record has offset %d, want 20", offset)
	}
}
