package storetest

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"

	"muster/internal/assert"
	"muster/internal/record"
	"muster/internal/store"
)

// sent is a record as the log holds it, with the leader epoch of its batch.
type sent struct {
	record.Record
	epoch int32
}

func (s sent) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "@%d epoch %d time %d key %s value %s", s.Offset, s.epoch, s.Timestamp, show(s.Key), show(s.Value))
	for _, h := range s.Headers {
		fmt.Fprintf(&b, " %s=%s", h.Key, show(h.Value))
	}
	return b.String()
}

func show(b []byte) string {
	switch {
	case b == nil:
		return "null"
	case len(b) > 40:
		return fmt.Sprintf("%q… (%d bytes)", b[:40], len(b))
	}
	return fmt.Sprintf("%q", b)
}

// same compares all that the contract promises to keep of a record.
func same(a, b sent) bool {
	return a.Offset == b.Offset && a.epoch == b.epoch && sameContent(a.Record, b.Record)
}

func sameContent(a, b record.Record) bool {
	return a.Timestamp == b.Timestamp && sameBytes(a.Key, b.Key) && sameBytes(a.Value, b.Value) &&
		slices.EqualFunc(a.Headers, b.Headers, func(x, y record.Header) bool {
			return x.Key == y.Key && sameBytes(x.Value, y.Value)
		})
}

func sameBytes(a, b []byte) bool { return bytes.Equal(a, b) && (a == nil) == (b == nil) }

// rec makes a record whose timestamp the fixture chooses.
func rec(key, value string) record.Record {
	return record.Record{Timestamp: math.MinInt64, Key: []byte(key), Value: []byte(value)}
}

// recAt makes a record with a timestamp.
func recAt(ts int64, key, value string) record.Record {
	return record.Record{Timestamp: ts, Key: []byte(key), Value: []byte(value)}
}

func tombstone(key string) record.Record {
	return record.Record{Timestamp: math.MinInt64, Key: []byte(key)}
}

// build makes a batch. Records without timestamp get the next second each.
func (f *fixture) build(tmpl record.Template, recs []record.Record) record.Batch {
	f.Helper()
	for i := range recs {
		recs[i].OffsetDelta = int32(i)
		if recs[i].Timestamp == math.MinInt64 {
			f.clock += 1000
			recs[i].Timestamp = f.clock
		}
	}
	b, err := record.Build(tmpl, recs)
	f.must(err)
	return b
}

// append appends a batch of records, reads them back at once, and remembers
// them with the offsets that the engine gave.
func (f *fixture) append(recs ...record.Record) {
	f.Helper()
	f.appendBatch(record.PlainTemplate(), recs...)
}

func (f *fixture) appendBatch(tmpl record.Template, recs ...record.Record) store.Appended {
	f.Helper()
	a, err := f.log.Append(f.ctx, f.build(tmpl, recs))
	f.must(err)
	got := f.readRange(a.BaseOffset, a.LastOffset+1, 1<<20)
	if len(got) != len(recs) || got[0].Offset != a.BaseOffset || got[len(got)-1].Offset != a.LastOffset {
		f.Fatalf("appended %d records and was told %+v; read back %v", len(recs), a, got)
	}
	for i, r := range recs {
		if !sameContent(got[i].Record, r) || got[i].epoch != f.epoch {
			f.Fatalf("appended %v in epoch %d, read back %v", sent{Record: r}, f.epoch, got[i])
		}
	}
	f.sent = append(f.sent, got...)
	return a
}

// appendMany appends n batches of three records, with keys that repeat.
func (f *fixture) appendMany(n int) {
	f.Helper()
	for i := range n {
		var recs []record.Record
		for j := range 3 {
			recs = append(recs, rec(fmt.Sprintf("key-%d", (i+j)%7), fmt.Sprintf("value %d.%d %s", i, j, strings.Repeat("x", 20*j))))
		}
		f.append(recs...)
	}
}

// fill appends more than the engine may leave alone, in records that nothing
// supersedes.
func (f *fixture) fill() {
	f.Helper()
	f.needDrops()
	for n := int64(0); n <= f.h.Slack; n += 500 {
		f.append(rec(fmt.Sprintf("filler %d", len(f.sent)), strings.Repeat("f", 500)))
	}
}

// batchesOf unpacks what Read returned, and releases it.
func (f *fixture) batchesOf(r store.Records) []record.Batch {
	f.Helper()
	b, err := r.Load()
	r.Release()
	f.must(err)
	assert.MustTrue(f, len(b) == r.Len, "a run of %d bytes loads as %d", r.Len, len(b))
	var out []record.Batch
	for len(b) > 0 {
		var batch record.Batch
		batch, b, err = record.Next(b)
		f.must(err)
		f.must(batch.Check())
		out = append(out, batch)
	}
	return out
}

// recordsOf unpacks a batch.
func (f *fixture) recordsOf(b record.Batch) []sent {
	f.Helper()
	var out []sent
	f.must(b.Each(func(r *record.Record) error {
		out = append(out, sent{Record: *r, epoch: b.LeaderEpoch()})
		return nil
	}))
	return out
}

// read does one Read and checks what holds for every answer: offsets grow, no
// batch ends before the offset, and none reaches NextOffset.
func (f *fixture) read(req store.ReadRequest) []record.Batch {
	f.Helper()
	r, err := f.log.Read(f.ctx, req)
	f.must(err)
	batches := f.batchesOf(r)
	last := req.Offset - 1
	for i, b := range batches {
		if b.LastOffset() <= last || i > 0 && b.BaseOffset() <= last || b.LastOffset() >= req.NextOffset {
			f.Fatalf("read %+v: batch %d is %d to %d, after %d", req, i, b.BaseOffset(), b.LastOffset(), last)
		}
		last = b.LastOffset()
	}
	return batches
}

// readRange reads in steps of about step bytes, and returns the records from
// an offset up to another.
func (f *fixture) readRange(from, next int64, step int) []sent {
	f.Helper()
	var out []sent
	for at := from; at < next; {
		batches := f.read(store.ReadRequest{Offset: at, NextOffset: next, MaxBytes: step, MinOne: true})
		if len(batches) == 0 {
			break
		}
		for _, b := range batches {
			for _, r := range f.recordsOf(b) {
				if r.Offset >= at && r.Offset < next {
					out = append(out, r)
				}
			}
		}
		at = batches[len(batches)-1].LastOffset() + 1
	}
	return out
}

// content reads the whole log.
func (f *fixture) content() []sent {
	f.Helper()
	start, end := f.log.Bounds()
	return f.readRange(start, end, 700)
}

// from returns what was sent at or after an offset.
func (f *fixture) from(offset int64) []sent {
	i := 0
	for i < len(f.sent) && f.sent[i].Offset < offset {
		i++
	}
	return f.sent[i:]
}

// verify demands that the log holds exactly what was sent at or after its
// start, and that all ways to ask about that agree.
func (f *fixture) verify() {
	f.Helper()
	start, _ := f.log.Bounds()
	f.equal(f.content(), f.from(start))
	f.verifyBounds()
	f.verifyEpochs(f.from(start))
}

func (f *fixture) equal(got, want []sent) {
	f.Helper()
	for i := range min(len(got), len(want)) {
		if !same(got[i], want[i]) {
			f.Fatalf("record %d of %d is\n%v, want\n%v", i, len(want), got[i], want[i])
		}
	}
	assert.MustEqual(f, len(got), len(want), "records")
}

// verifyBounds demands that the log ends after the last record that was sent,
// and that reading is refused outside of the bounds.
func (f *fixture) verifyBounds() {
	f.Helper()
	start, end := f.log.Bounds()
	if n := len(f.sent); n > 0 && end != f.sent[n-1].Offset+1 {
		f.Fatalf("log ends at %d after a record at %d", end, f.sent[n-1].Offset)
	}
	assert.MustTrue(f, start <= end && start >= 0, "log from %d to %d", start, end)
	for _, at := range []int64{-1, start - 1, end + 1, math.MaxInt64} {
		f.wantErr(f.readErr(at), store.ErrOffsetOutOfRange)
	}
	assert.MustEqual(f, len(f.read(store.ReadRequest{Offset: end, NextOffset: math.MaxInt64, MaxBytes: 1 << 20, MinOne: true})), 0, "batches at the end of the log")
}

func (f *fixture) readErr(offset int64) error {
	r, err := f.log.Read(f.ctx, store.ReadRequest{Offset: offset, NextOffset: math.MaxInt64, MaxBytes: 1 << 20, MinOne: true})
	r.Release()
	return err
}

// verifyEpochs demands that Epochs is in order and tells the epoch of every
// record.
func (f *fixture) verifyEpochs(recs []sent) {
	f.Helper()
	epochs := f.log.Epochs()
	for i := 1; i < len(epochs); i++ {
		assert.MustTrue(f, epochs[i].Epoch > epochs[i-1].Epoch && epochs[i].Start > epochs[i-1].Start, "epochs out of order: %v", epochs)
	}
	for _, r := range recs {
		told := int32(-1)
		for _, e := range epochs {
			if e.Start <= r.Offset {
				told = e.Epoch
			}
		}
		assert.MustEqual(f, told, r.epoch, "epochs %v do not fit %v", epochs, r)
	}
}

func (f *fixture) wantErr(got, want error) {
	f.Helper()
	assert.MustErrorIs(f, got, want)
}

// flush waits until the log is durable.
func (f *fixture) flush() {
	f.Helper()
	done := make(chan error, 1)
	f.log.Flush(func(err error) { done <- err })
	f.must(<-done)
}
