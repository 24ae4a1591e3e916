package interop

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
)

// batch describes a record batch that a test makes by itself.
type batch struct {
	values     []string
	keys       []string // null keys if nil
	timestamp  int64    // of the first record, each next one is 1 ms later; now if 0
	attributes int16
	idempotent bool
	producer   int64
	epoch      int16
	sequence   int32
}

// values makes n values that begin with what and a number.
func values(what string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("%s-%d", what, i)
	}
	return out
}

// encode makes the batch's bytes, as they stand in a Produce request.
func (b batch) encode() []byte {
	var records []byte
	for i := range b.values {
		records = append(records, b.record(i)...)
	}
	return b.encodeAround(records)
}

// record encodes one record.
func (b batch) record(i int) []byte {
	r := kmsg.NewRecord()
	r.TimestampDelta64, r.OffsetDelta, r.Value = int64(i), int32(i), []byte(b.values[i])
	if b.keys != nil {
		r.Key = []byte(b.keys[i])
	}
	r.Length = int32(len(r.AppendTo(nil)) - 1) // without the length, which is one byte while 0
	return r.AppendTo(nil)
}

// encodeAround puts a batch header before records that are encoded already, and
// compressed, if attributes say so.
func (b batch) encodeAround(records []byte) []byte {
	if b.timestamp == 0 {
		b.timestamp = time.Now().UnixMilli()
	}
	n := int32(len(b.values))
	out := kmsg.RecordBatch{
		PartitionLeaderEpoch: -1, Magic: 2, Attributes: b.attributes, LastOffsetDelta: n - 1,
		FirstTimestamp: b.timestamp, MaxTimestamp: b.timestamp + int64(n) - 1,
		ProducerID: -1, ProducerEpoch: -1, FirstSequence: -1, NumRecords: n, Records: records,
	}
	if b.idempotent {
		out.ProducerID, out.ProducerEpoch, out.FirstSequence = b.producer, b.epoch, b.sequence
	}
	out.Length = int32(len(out.AppendTo(nil)) - batchLengthEnd)
	return seal(out.AppendTo(nil))
}

// Places in a batch: the end of its length, its format, its checksum, where the
// bytes that the checksum covers begin, and the largest timestamp.
const (
	batchLengthEnd    = 12
	batchMagic        = 16
	batchCRC          = 17
	batchCovered      = 21
	batchMaxTimestamp = 35
)

// seal computes a batch's checksum.
func seal(b []byte) []byte {
	binary.BigEndian.PutUint32(b[batchCRC:], crc32.Checksum(b[batchCovered:], crc32.MakeTable(crc32.Castagnoli)))
	return b
}

// produceRequest is a Produce request for one partition, of a version that
// names topics.
func produceRequest(topic string, partition int32, acks int16, records []byte) *kmsg.ProduceRequest {
	req := kmsg.NewPtrProduceRequest()
	req.Version, req.Acks, req.TimeoutMillis = 9, acks, 30_000
	t := kmsg.NewProduceRequestTopic()
	t.Topic = topic
	p := kmsg.NewProduceRequestTopicPartition()
	p.Partition, p.Records = partition, records
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	return req
}

// produce writes a batch with acks=all and returns the partition's answer.
func produce(w *wire, topic string, partition int32, b batch) kmsg.ProduceResponseTopicPartition {
	w.t.Helper()
	return produced(w.t, ask[*kmsg.ProduceResponse](w, produceRequest(topic, partition, -1, b.encode())))
}

// produced returns the only partition of an answer.
func produced(t testing.TB, resp *kmsg.ProduceResponse) kmsg.ProduceResponseTopicPartition {
	t.Helper()
	assert.MustTrue(t, len(resp.Topics) == 1 && len(resp.Topics[0].Partitions) == 1, "the answer is not about one partition: %+v", resp)
	return resp.Topics[0].Partitions[0]
}

// mustProduce writes a batch that must be accepted, and returns its base offset.
func mustProduce(w *wire, topic string, partition int32, b batch) int64 {
	w.t.Helper()
	p := produce(w, topic, partition, b)
	if p.ErrorCode != 0 {
		w.t.Fatalf("produce: error code %d: %s", p.ErrorCode, text(p.ErrorMessage))
	}
	return p.BaseOffset
}

// fetchRequest asks for partitions of one topic from an offset, by name, without
// a session, with generous limits.
func fetchRequest(topic string, offset int64, partitions ...int32) *kmsg.FetchRequest {
	req := kmsg.NewPtrFetchRequest()
	req.Version, req.ReplicaID, req.SessionEpoch = 11, -1, -1
	req.MaxBytes, req.MinBytes = 50<<20, 1
	t := kmsg.NewFetchRequestTopic()
	t.Topic = topic
	for _, index := range partitions {
		p := kmsg.NewFetchRequestTopicPartition()
		p.Partition, p.FetchOffset, p.PartitionMaxBytes, p.CurrentLeaderEpoch = index, offset, 10<<20, -1
		t.Partitions = append(t.Partitions, p)
	}
	req.Topics = append(req.Topics, t)
	return req
}

// fetched returns the only partition of an answer.
func fetched(t testing.TB, resp *kmsg.FetchResponse) kmsg.FetchResponseTopicPartition {
	t.Helper()
	assert.MustTrue(t, len(resp.Topics) == 1 && len(resp.Topics[0].Partitions) == 1, "the answer is not about one partition: %+v", resp)
	return resp.Topics[0].Partitions[0]
}

// storedRecord is a record as a fetch returned it.
type storedRecord struct {
	offset    int64
	timestamp int64
	value     string
}

// decode takes uncompressed batches apart.
func decode(t testing.TB, batches []byte) []storedRecord {
	t.Helper()
	var out []storedRecord
	for len(batches) > 0 {
		if len(batches) < batchLengthEnd || len(batches) < batchLengthEnd+int(binary.BigEndian.Uint32(batches[8:])) {
			break // A batch that does not fit the fetch may be cut.
		}
		size := batchLengthEnd + int(binary.BigEndian.Uint32(batches[8:]))
		out = append(out, decodeBatch(t, batches[:size])...)
		batches = batches[size:]
	}
	return out
}

func decodeBatch(t testing.TB, encoded []byte) []storedRecord {
	t.Helper()
	var b kmsg.RecordBatch
	assert.Must(t, b.ReadFrom(encoded), "a stored batch cannot be read")
	assert.MustEqual(t, string(seal(slices.Clone(encoded))), string(encoded), "the batch at offset %d has a wrong checksum", b.FirstOffset)
	var out []storedRecord
	rest := b.Records
	for range b.NumRecords {
		length, width := binary.Varint(rest)
		var r kmsg.Record
		assert.Must(t, r.ReadFrom(rest[:width+int(length)]), "a stored record cannot be read")
		rest = rest[width+int(length):]
		at := storedRecord{b.FirstOffset + int64(r.OffsetDelta), b.FirstTimestamp + r.TimestampDelta64, string(r.Value)}
		if b.Attributes&logAppendTime != 0 {
			at.timestamp = b.MaxTimestamp
		}
		out = append(out, at)
	}
	return out
}

// logAppendTime is the attribute of batches whose timestamp is the broker's.
const logAppendTime = 8

// readAll fetches a partition of uncompressed batches from offset 0 to its end.
func readAll(w *wire, topic string, partition int32) []storedRecord {
	w.t.Helper()
	return readFrom(w, topic, partition, logStart(w, topic, partition))
}

// logStart asks for the first offset of a partition.
func logStart(w *wire, topic string, partition int32) int64 {
	w.t.Helper()
	req := kmsg.NewPtrListOffsetsRequest()
	req.Version, req.ReplicaID = 7, -1
	p := kmsg.NewListOffsetsRequestTopicPartition()
	p.Partition, p.Timestamp = partition, -2
	req.Topics = []kmsg.ListOffsetsRequestTopic{{Topic: topic, Partitions: []kmsg.ListOffsetsRequestTopicPartition{p}}}
	got := ask[*kmsg.ListOffsetsResponse](w, req).Topics[0].Partitions[0]
	assert.MustEqual(w.t, got.ErrorCode, 0, "start of %s-%d: error code", topic, partition)
	return got.Offset
}

// readFrom does the same from another offset.
func readFrom(w *wire, topic string, partition int32, offset int64) []storedRecord {
	w.t.Helper()
	var out []storedRecord
	for {
		p := fetched(w.t, ask[*kmsg.FetchResponse](w, fetchRequest(topic, offset, partition)))
		assert.MustEqual(w.t, p.ErrorCode, 0, "fetch %s-%d at %d: error code", topic, partition, offset)
		recs := decode(w.t, p.RecordBatches)
		// A batch may begin before the offset that was asked for.
		recs = slices.DeleteFunc(recs, func(r storedRecord) bool { return r.offset < offset })
		if len(recs) == 0 {
			return out
		}
		out = append(out, recs...)
		offset = recs[len(recs)-1].offset + 1
	}
}

// wantValues compares the values of records.
func wantValues(t testing.TB, what string, got []storedRecord, want []string) {
	t.Helper()
	have := make([]string, len(got))
	for i := range got {
		have[i] = got[i].value
	}
	if !slices.Equal(have, want) {
		t.Errorf("%s: got %s\nwant %s", what, strings.Join(have, " "), strings.Join(want, " "))
	}
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
