package rig

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// The load: 1 KB records in batches of 64 KB, to six partitions at a time.
const (
	Partitions   = 6
	RecordSize   = 1 << 10
	BatchRecords = 63 // as many as 64 KB hold
	HeaderSize   = 61 // of a record batch
)

var Castagnoli = crc32.MakeTable(crc32.Castagnoli)

var formatter = kmsg.NewRequestFormatter(kmsg.FormatterClientID("bench"))

// RequestFrame encodes a request with its length.
func RequestFrame(req kmsg.Request, correlation int32) []byte {
	return formatter.AppendRequest(nil, req, correlation)
}

// SetCorrelation changes the correlation id of an encoded request.
func SetCorrelation(frame []byte, id int32) { binary.BigEndian.PutUint32(frame[8:], uint32(id)) }

// Shape is how records are laid out: how large they are, how many make a batch,
// and to how many partitions a request brings a batch each.
type Shape struct{ Partitions, Record, Records int }

// NewBatch makes a record batch with records of random bytes.
func NewBatch(records, size int, seed uint64) []byte {
	random := rand.New(rand.NewPCG(seed, 1))
	all := make([]kmsg.Record, records)
	for i := range all {
		value := make([]byte, size)
		for j := range value {
			value[j] = byte(random.Uint32())
		}
		all[i].Value = value
	}
	return BatchOf(records, 0, RecordsBody(all))
}

// RecordsBody encodes records as they stand in a batch, one after the other.
func RecordsBody(records []kmsg.Record) []byte {
	var body []byte
	for i, r := range records {
		r.OffsetDelta = int32(i)
		// The length counts what follows it, so encode once to learn it.
		r.Length = int32(len(r.AppendTo(nil)) - 1)
		body = r.AppendTo(body)
	}
	return body
}

// BatchOf makes a batch of an encoded body, with attributes that say how that is
// compressed.
func BatchOf(records int, attributes int16, body []byte) []byte {
	now := time.Now().UnixMilli()
	batch := kmsg.RecordBatch{
		Length: int32(HeaderSize - 12 + len(body)), Magic: 2, PartitionLeaderEpoch: -1, Attributes: attributes,
		LastOffsetDelta: int32(records - 1), FirstTimestamp: now, MaxTimestamp: now,
		ProducerID: -1, ProducerEpoch: -1, FirstSequence: -1, NumRecords: int32(records), Records: body,
	}
	b := batch.AppendTo(nil)
	binary.BigEndian.PutUint32(b[17:], crc32.Checksum(b[21:], Castagnoli))
	return b
}

// ProduceRequest asks to append a batch to each of the given partitions.
func ProduceRequest(topic string, acks int16, indexes []int32, batch func(i int) []byte) *kmsg.ProduceRequest {
	req := kmsg.NewPtrProduceRequest()
	req.Version = 12
	req.Acks = acks
	req.TimeoutMillis = 30_000
	t := kmsg.NewProduceRequestTopic()
	t.Topic = topic
	for i, index := range indexes {
		p := kmsg.NewProduceRequestTopicPartition()
		p.Partition, p.Records = index, batch(i)
		t.Partitions = append(t.Partitions, p)
	}
	req.Topics = append(req.Topics, t)
	return req
}

// checkProduced checks the body of a Produce answer.
func checkProduced(body []byte, version int16, want int) error {
	resp := kmsg.NewPtrProduceResponse()
	resp.Version = version
	if err := resp.ReadFrom(body); err != nil {
		return fmt.Errorf("answer to Produce: %w", err)
	}
	n := 0
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
				return fmt.Errorf("produce to %s-%d: %w", t.Topic, p.Partition, err)
			}
			if p.BaseOffset < 0 {
				return fmt.Errorf("produce to %s-%d: base offset %d", t.Topic, p.Partition, p.BaseOffset)
			}
			n++
		}
	}
	if n != want {
		return fmt.Errorf("answer to Produce for %d partitions, not %d", n, want)
	}
	return nil
}

// CheckBatches checks the checksums of record batches that lie in a row, and
// that their offsets go on from first unless that is negative. It returns the
// offset after the last record.
func CheckBatches(b []byte, first int64) (int64, error) {
	for len(b) > 0 {
		if len(b) < HeaderSize {
			return 0, errors.New("record batch is cut short")
		}
		size := int(binary.BigEndian.Uint32(b[8:])) + 12
		if size < HeaderSize || size > len(b) {
			return 0, fmt.Errorf("record batch of %d bytes in %d", size, len(b))
		}
		if crc32.Checksum(b[21:size], Castagnoli) != binary.BigEndian.Uint32(b[17:]) {
			return 0, errors.New("record batch has a wrong checksum")
		}
		if base := int64(binary.BigEndian.Uint64(b)); first >= 0 && base != first {
			return 0, fmt.Errorf("record batch at offset %d, expected %d", base, first)
		}
		if first >= 0 {
			first += int64(binary.BigEndian.Uint32(b[57:]))
		}
		b = b[size:]
	}
	return first, nil
}

// ReadFrame reads one answer and returns its correlation id and what follows.
func ReadFrame(r io.Reader, buf []byte) (int32, []byte, error) {
	var head [8]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, fmt.Errorf("read answer: %w", err)
	}
	n := int(binary.BigEndian.Uint32(head[:])) - 4
	if n < 0 || n > 64<<20 {
		return 0, nil, fmt.Errorf("answer of %d bytes", n)
	}
	if cap(buf) < n {
		buf = make([]byte, n)
	}
	_, err := io.ReadFull(r, buf[:n])
	return int32(binary.BigEndian.Uint32(head[4:])), buf[:n], err
}

// Ask sends a request and reads its answer.
func Ask(c net.Conn, req kmsg.Request) (kmsg.Response, error) {
	const correlation = 7
	if _, err := c.Write(RequestFrame(req, correlation)); err != nil {
		return nil, err
	}
	id, body, err := ReadFrame(c, nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", kmsg.NameForKey(req.Key()), err)
	}
	if id != correlation {
		return nil, fmt.Errorf("%s: answer to request %d, not %d", kmsg.NameForKey(req.Key()), id, correlation)
	}
	resp := req.ResponseKind()
	if resp.IsFlexible() && resp.Key() != int16(kmsg.ApiVersions) {
		if len(body) == 0 || body[0] != 0 {
			return nil, fmt.Errorf("%s: tags in the header of the answer", kmsg.NameForKey(req.Key()))
		}
		body = body[1:]
	}
	if err := resp.ReadFrom(body); err != nil {
		return nil, fmt.Errorf("%s: %w", kmsg.NameForKey(req.Key()), err)
	}
	return resp, nil
}

// Greet asks for ApiVersions.
func Greet(c net.Conn) error {
	resp, err := Ask(c, kmsg.NewPtrApiVersionsRequest())
	if err != nil {
		return err
	}
	versions := resp.(*kmsg.ApiVersionsResponse)
	if versions.ErrorCode != 0 || len(versions.ApiKeys) == 0 {
		return fmt.Errorf("ApiVersions: error %d, %d keys", versions.ErrorCode, len(versions.ApiKeys))
	}
	return nil
}

// BatchBytes is how large a batch is at most: what a Java producer that is
// busy sends by default.
const BatchBytes = 16 << 10

// NewShape says how records of a size are laid out.
func NewShape(record, partitions int) Shape {
	s := Shape{Partitions: partitions, Record: record, Records: BatchBytes / record}
	for len(NewBatch(s.Records, record, 0)) > BatchBytes {
		s.Records--
	}
	return s
}

func SizeName(n int) string {
	if n%1024 == 0 {
		return fmt.Sprintf("%d KB", n/1024)
	}
	return fmt.Sprintf("%d B", n)
}

func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
