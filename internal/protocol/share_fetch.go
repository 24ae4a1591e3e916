package protocol

import (
	"encoding/binary"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/store"
)

// ShareFetchResponse is the answer to ShareFetch, with records that need not be in memory. All
// but the records is kmsg's.
type ShareFetchResponse struct {
	ThrottleMillis int32
	ErrorCode      int16
	ErrorMessage   *string
	LockMillis     int32 // AcquisitionLockTimeoutMillis
	Topics         []ShareFetchTopic
	Brokers        []kmsg.ShareFetchResponseNodeEndpoint // that leader hints name
}

// ShareFetchTopic is one topic of a ShareFetchResponse.
type ShareFetchTopic struct {
	TopicID    [16]byte
	Partitions []ShareFetchPartition
}

// ShareFetchPartition is one partition of a ShareFetchResponse.
type ShareFetchPartition struct {
	Index                int32
	ErrorCode            int16
	AcknowledgeErrorCode int16
	Leader               LeaderHint // -1 for none
	Records              store.Records
	Acquired             []kmsg.ShareFetchResponseTopicPartitionAcquiredRecord
}

// EncodeShareFetch makes the frame of a ShareFetch answer, version 1 or later. Records in files
// stay there: the frame consists of the bytes between them.
func (r *Request) EncodeShareFetch(resp *ShareFetchResponse) (*Response, error) {
	e := fetchEncoder{version: r.Version, flexible: true}
	e.b = r.AppendHeader(make([]byte, 0, 512), true)
	e.int32(resp.ThrottleMillis)
	e.int16(resp.ErrorCode)
	e.nullable(resp.ErrorMessage)
	e.int32(resp.LockMillis)
	e.count(len(resp.Topics))
	for i := range resp.Topics {
		e.shareTopic(&resp.Topics[i])
	}
	e.count(len(resp.Brokers))
	for i := range resp.Brokers {
		b := &resp.Brokers[i]
		e.int32(b.NodeID)
		e.text(b.Host)
		e.int32(b.Port)
		e.nullable(b.Rack)
		e.noTags()
	}
	e.noTags()
	e.cut()
	binary.BigEndian.PutUint32(e.parts[0].Bytes, uint32(e.size-4))
	out := &Response{Parts: e.parts}
	if e.err != nil {
		out.Release()
		return nil, fmt.Errorf("read records: %w", e.err)
	}
	return out, nil
}

func (e *fetchEncoder) shareTopic(t *ShareFetchTopic) {
	e.b = append(e.b, t.TopicID[:]...)
	e.count(len(t.Partitions))
	for i := range t.Partitions {
		e.sharePartition(&t.Partitions[i])
	}
	e.noTags()
}

func (e *fetchEncoder) sharePartition(p *ShareFetchPartition) {
	e.int32(p.Index)
	e.int16(p.ErrorCode)
	e.nullable(nil)
	e.int16(p.AcknowledgeErrorCode)
	e.nullable(nil)
	e.int32(p.Leader.ID)
	e.int32(p.Leader.Epoch)
	e.noTags()
	e.count(p.Records.Len)
	e.records(p.Records)
	e.count(len(p.Acquired))
	for i := range p.Acquired {
		a := &p.Acquired[i]
		e.int64(a.FirstOffset)
		e.int64(a.LastOffset)
		e.int16(a.DeliveryCount)
		e.noTags()
	}
	e.noTags()
}

// nullable writes a compact string that may be null.
func (e *fetchEncoder) nullable(s *string) {
	if s == nil {
		e.count(-1)
		return
	}
	e.text(*s)
}
