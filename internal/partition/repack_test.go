package partition

import (
	"bytes"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/metadata"
	"muster/internal/record"
	"muster/internal/store"
	"muster/internal/store/mem"
)

// packedBatch makes a batch of a producer.
func (r *rig) packedBatch(codec record.Codec, p producerAt, values ...[]byte) record.Batch {
	r.t.Helper()
	tmpl := record.PlainTemplate()
	tmpl.Codec, tmpl.ProducerID, tmpl.ProducerEpoch, tmpl.BaseSequence = codec, p.id, p.epoch, p.seq
	var recs []record.Record
	for i, v := range values {
		recs = append(recs, record.Record{OffsetDelta: int32(i), Timestamp: r.now.UnixMilli() + int64(i), Key: []byte("key"), Value: v})
	}
	b, err := record.Build(tmpl, recs)
	must(r.t, err)
	return b
}

// stored reads the batch at an offset.
func (r *rig) stored(offset int64) record.Batch {
	r.t.Helper()
	recs, err := r.part().log.Load().Read(r.t.Context(), store.ReadRequest{Offset: offset, NextOffset: 1 << 40, MaxBytes: 1, MinOne: true})
	must(r.t, err)
	b, err := recs.Load()
	must(r.t, err)
	return b
}

func TestCompressionTypeIsHonoured(t *testing.T) {
	values := [][]byte{bytes.Repeat([]byte("value "), 500), nil, []byte("three")}
	for setting, want := range map[string]record.Codec{
		"uncompressed": record.None, "gzip": record.Gzip, "snappy": record.Snappy, "lz4": record.LZ4, "zstd": record.ZSTD, "producer": -1,
	} {
		for from := record.None; from <= record.ZSTD; from++ {
			r := newRig(t, mem.New(), map[string]string{"compression.type": setting})
			sent := r.packedBatch(from, producerAt{7, 0, 0}, values...)
			came := bytes.Clone(sent)
			r.wantAppend(sent, 0)
			// Sent again, it is known by its sequence.
			r.wantAppend(r.packedBatch(from, producerAt{7, 0, 0}, values...), 0)
			got := r.stored(0)
			codec := want
			if codec < 0 {
				codec = from
			}
			if err := got.Check(); err != nil || got.Codec() != codec {
				t.Fatalf("%s with compression.type %s is stored in %s: %v", from, setting, got.Codec(), err)
			}
			if got.ProducerID() != 7 || got.BaseSequence() != 0 || got.MaxTimestamp() != record.Batch(came).MaxTimestamp() {
				t.Errorf("%s with compression.type %s: header %+v", from, setting, record.TemplateOf(got))
			}
			i := 0
			err := got.Each(func(rec *record.Record) error {
				if !bytes.Equal(rec.Value, values[i]) || rec.Timestamp != r.now.UnixMilli()+int64(i) || rec.Offset != int64(i) {
					t.Errorf("%s with compression.type %s: record %d is %+v", from, setting, i, rec)
				}
				i++
				return nil
			})
			if err != nil || i != len(values) {
				t.Errorf("%s with compression.type %s: %d records, %v", from, setting, i, err)
			}
			if codec == from && !bytes.Equal(got[21:], came[21:]) {
				t.Errorf("%s with compression.type %s was changed though nothing had to be", from, setting)
			}
		}
	}
}

func TestABatchThatIsTooLargeInTheTopicsCompressionIsRefused(t *testing.T) {
	r := newRig(t, mem.New(), map[string]string{"compression.type": "uncompressed", "max.message.bytes": "10000"})
	r.wantRefused(r.packedBatch(record.ZSTD, plain, make([]byte, 1<<20)), kerr.MessageTooLarge)
	r.wantAppend(r.packedBatch(record.ZSTD, plain, make([]byte, 9000)), 0)
	bad := r.packedBatch(record.Gzip, plain, make([]byte, 9000))
	bad[70]++
	bad.SetLogAppendTime(5) // Which computes the checksum.
	bad[22] &^= 0x08
	r.wantRefused(bad, kerr.CorruptMessage)
}

// What the coordinators write must be as they wrote it, whatever the broker's
// default is for the topics of others.
func TestInternalTopicsAreNotCompressedAnew(t *testing.T) {
	r := newRig(t, mem.New(), map[string]string{"compression.type": "gzip"})
	b := r.packedBatch(record.None, plain, []byte("v"))
	internal := &Partition{topic: metadata.OffsetsTopic}
	if got, bad := internal.repack(b, r.part().cfg.Load()); bad.Err != nil || got.Codec() != record.None {
		t.Errorf("packed with %s, %+v", got.Codec(), bad)
	}
}

func TestLogAppendTimeAndCompressionTypeGoTogether(t *testing.T) {
	r := newRig(t, mem.New(), map[string]string{"compression.type": "zstd", "message.timestamp.type": "LogAppendTime"})
	a := r.append(r.packedBatch(record.None, plain, []byte("v")), AcksAll)
	if got := r.stored(0); a.Err != nil || got.Check() != nil || got.Codec() != record.ZSTD || got.MaxTimestamp() != r.now.UnixMilli() || !got.LogAppendTime() {
		t.Errorf("%+v, stored %+v, %v", a, record.TemplateOf(got), got.Check())
	}
}
