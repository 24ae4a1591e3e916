package protocol

import (
	"encoding/binary"
	"fmt"

	"muster/internal/store"
)

// Versions of Fetch at which its answer changed.
const (
	fetchFlexible = 12
	fetchIDs      = 13
	fetchBrokers  = 16
)

// FetchResponse is the answer to Fetch, with records that need not be in
// memory.
type FetchResponse struct {
	ThrottleMillis int32
	ErrorCode      int16
	SessionID      int32
	Topics         []FetchTopic
	Brokers        []FetchBroker // that leader hints name; from version 16 on
}

// FetchBroker says where a broker is.
type FetchBroker struct {
	ID   int32
	Host string
	Port int32
	Rack string // empty for none
}

// FetchTopic is one topic of a FetchResponse.
type FetchTopic struct {
	Topic      string   // up to version 12
	TopicID    [16]byte // from version 13
	Partitions []FetchPartition
}

// FetchPartition is one partition of a FetchResponse.
type FetchPartition struct {
	Index            int32
	ErrorCode        int16
	HighWatermark    int64
	LastStableOffset int64
	LogStartOffset   int64
	// NoAborted says that the client does not read committed records only, so
	// that the list of aborted transactions is null rather than empty.
	NoAborted bool
	// Aborted are the transactions whose records a client that reads committed
	// ones is to skip, in the order of their first offsets.
	Aborted   []store.Aborted
	Diverging *DivergingEpoch
	Leader    *LeaderHint
	Records   store.Records
}

// DivergingEpoch tells a client where its records part from the log (v12+).
type DivergingEpoch struct {
	Epoch     int32
	EndOffset int64
}

// LeaderHint tells a client who leads the partition now (v12+).
type LeaderHint struct {
	ID    int32
	Epoch int32
}

// EncodeFetch makes the frame of a Fetch answer, version 4 or later. Records in
// files stay there: the frame consists of the bytes between them.
func (r *Request) EncodeFetch(resp *FetchResponse) (*Response, error) {
	e := fetchEncoder{version: r.Version, flexible: r.Version >= fetchFlexible}
	e.b = r.AppendHeader(make([]byte, 0, 512), e.flexible)
	e.int32(resp.ThrottleMillis)
	if e.version >= 7 {
		e.int16(resp.ErrorCode)
		e.int32(resp.SessionID)
	}
	e.count(len(resp.Topics))
	for i := range resp.Topics {
		e.topic(&resp.Topics[i])
	}
	e.brokers(resp.Brokers)
	e.cut()
	binary.BigEndian.PutUint32(e.parts[0].Bytes, uint32(e.size-4))
	out := &Response{Parts: e.parts}
	if e.err != nil {
		out.Release()
		return nil, fmt.Errorf("read records: %w", e.err)
	}
	return out, nil
}

type fetchEncoder struct {
	version  int16
	flexible bool
	b        []byte // the bytes part under construction
	parts    []Part
	size     int
	err      error
}

func (e *fetchEncoder) int16(v int16) { e.b = binary.BigEndian.AppendUint16(e.b, uint16(v)) }
func (e *fetchEncoder) int32(v int32) { e.b = binary.BigEndian.AppendUint32(e.b, uint32(v)) }
func (e *fetchEncoder) int64(v int64) { e.b = binary.BigEndian.AppendUint64(e.b, uint64(v)) }

func (e *fetchEncoder) count(n int) {
	if e.flexible {
		e.b = binary.AppendUvarint(e.b, uint64(n)+1)
		return
	}
	e.int32(int32(n))
}

func (e *fetchEncoder) noTags() {
	if e.flexible {
		e.b = append(e.b, 0)
	}
}

// cut ends the bytes part under construction.
func (e *fetchEncoder) cut() {
	if len(e.b) > 0 {
		e.parts = append(e.parts, Part{Bytes: e.b})
		e.size += len(e.b)
		e.b = nil
	}
}

func (e *fetchEncoder) topic(t *FetchTopic) {
	switch {
	case e.version >= fetchIDs:
		e.b = append(e.b, t.TopicID[:]...)
	case e.flexible:
		e.text(t.Topic)
	default:
		e.int16(int16(len(t.Topic)))
		e.b = append(e.b, t.Topic...)
	}
	e.count(len(t.Partitions))
	for i := range t.Partitions {
		e.partition(&t.Partitions[i])
	}
	e.noTags()
}

func (e *fetchEncoder) partition(p *FetchPartition) {
	e.int32(p.Index)
	e.int16(p.ErrorCode)
	e.int64(p.HighWatermark)
	e.int64(p.LastStableOffset)
	if e.version >= 5 {
		e.int64(p.LogStartOffset)
	}
	e.aborted(p)
	if e.version >= 11 {
		e.int32(-1) // preferred read replica
	}
	e.count(p.Records.Len)
	e.records(p.Records)
	if e.flexible {
		e.partitionTags(p)
	}
}

// aborted writes the list of aborted transactions.
func (e *fetchEncoder) aborted(p *FetchPartition) {
	if p.NoAborted {
		e.count(-1)
		return
	}
	e.count(len(p.Aborted))
	for _, a := range p.Aborted {
		e.int64(a.ProducerID)
		e.int64(a.FirstOffset)
		e.noTags()
	}
}

// inlineBelow is the size up to which records are copied into the frame: one
// write of a little more is cheaper than two, and reaches the client whole.
const inlineBelow = 16 << 10

func (e *fetchEncoder) records(r store.Records) {
	switch {
	case r.Len == 0:
	case r.Len <= inlineBelow:
		e.inline(r)
	default:
		e.cut()
		e.parts = append(e.parts, Part{Records: r})
		e.size += r.Len
	}
}

func (e *fetchEncoder) inline(r store.Records) {
	defer r.Release()
	if r.Bytes != nil {
		e.b = append(e.b, r.Bytes...)
		return
	}
	at := len(e.b)
	e.b = append(e.b, make([]byte, r.Len)...)
	if _, err := r.File.ReadAt(e.b[at:], r.Pos); err != nil {
		e.err = err
	}
}

// partitionTags writes the tagged fields: 0 diverging epoch, 1 current leader.
func (e *fetchEncoder) partitionTags(p *FetchPartition) {
	n := 0
	for _, there := range []bool{p.Diverging != nil, p.Leader != nil} {
		if there {
			n++
		}
	}
	e.b = binary.AppendUvarint(e.b, uint64(n))
	if p.Diverging != nil {
		e.b = append(e.b, 0, 13) // tag, size
		e.int32(p.Diverging.Epoch)
		e.int64(p.Diverging.EndOffset)
		e.b = append(e.b, 0)
	}
	if p.Leader != nil {
		e.b = append(e.b, 1, 9)
		e.int32(p.Leader.ID)
		e.int32(p.Leader.Epoch)
		e.b = append(e.b, 0)
	}
}

// brokers writes the tagged fields of the whole: 0 where brokers are.
func (e *fetchEncoder) brokers(list []FetchBroker) {
	if len(list) == 0 || e.version < fetchBrokers {
		e.noTags()
		return
	}
	value := fetchEncoder{flexible: true}
	value.count(len(list))
	for _, b := range list {
		value.int32(b.ID)
		value.text(b.Host)
		value.int32(b.Port)
		if b.Rack == "" {
			value.count(-1)
		} else {
			value.text(b.Rack)
		}
		value.noTags()
	}
	e.b = append(e.b, 1, 0) // one tag, 0
	e.b = binary.AppendUvarint(e.b, uint64(len(value.b)))
	e.b = append(e.b, value.b...)
}

// text writes a compact string.
func (e *fetchEncoder) text(s string) {
	e.b = binary.AppendUvarint(e.b, uint64(len(s))+1)
	e.b = append(e.b, s...)
}
