package storetest

import (
	"bytes"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"muster/internal/assert"
	"muster/internal/record"
	"muster/internal/store"
)

var appendTests = []test{
	{"ANewLogIsEmpty", testNewLogIsEmpty},
	{"RecordsOfEveryKindAreReadBack", testRecordKinds},
	{"OffsetsGrowFromBatchToBatch", testOffsetsGrow},
	{"AppendWritesBaseOffsetAndLeaderEpochIntoTheBatch", testAppendWritesHeader},
	{"AppendKeepsNoReferenceToTheBatch", testAppendKeepsNoReference},
	{"AnInvalidBatchIsRefusedAndNothingIsStored", testInvalidBatch},
	{"SizeGrowsWithWhatIsAppended", testSizeGrows},
	{"RecordsSurviveReopening", testRecordsSurviveReopen},
	{"AppendGoesOnAfterReopening", testAppendAfterReopen},
	{"FlushCallsBackOnce", testFlushOnce},
	{"FlushCallsBackOnceWhileTheStoreCloses", testFlushDuringClose},
	{"ConfigurationMayChangeAtAnyTime", testSetConfig},
}

func testNewLogIsEmpty(f *fixture) {
	f.verify()
	start, end := f.log.Bounds()
	assert.True(f, start == end, "a new log goes from %d to %d", start, end)
	if n := f.log.Size(); n != 0 {
		f.Errorf("a new log has %d bytes", n)
	}
	if e := f.log.Epochs(); len(e) != 0 {
		f.Errorf("a new log has epochs %v", e)
	}
	if r, next, err := f.log.Producers(f.ctx); err != nil || len(r) != 0 || next != end {
		f.Errorf("a new log has producers %v up to %d (%v)", r, next, err)
	}
}

func testRecordKinds(f *fixture) {
	h := func(key string, value []byte) record.Header { return record.Header{Key: key, Value: value} }
	for _, codec := range []record.Codec{record.None, record.Gzip, record.Snappy, record.LZ4, record.ZSTD} {
		ts := f.clock + 1000
		tmpl := record.PlainTemplate()
		tmpl.Codec = codec
		f.appendBatch(tmpl,
			record.Record{Timestamp: ts},
			record.Record{Timestamp: ts - 5000, Key: []byte{}, Value: []byte{}},
			record.Record{Timestamp: ts + 7, Key: []byte("key"), Value: nil},
			record.Record{Timestamp: ts, Key: nil, Value: []byte("value")},
			record.Record{Timestamp: ts, Key: []byte{0, 1, 0xff}, Value: bytes.Repeat([]byte("long "), 4000)},
			record.Record{Timestamp: ts, Key: []byte("k"), Value: []byte("v"), Headers: []record.Header{
				h("a", []byte("1")), h("a", []byte("2")), h("", []byte{}), h("null", nil),
			}},
		)
		f.appendBatch(tmpl, rec(codec.String(), strings.Repeat("y", 300)))
	}
	f.append(record.Record{Timestamp: record.NoTimestamp, Key: []byte("k"), Value: []byte("no timestamp")})
	f.verify()
}

func testOffsetsGrow(f *fixture) {
	last := int64(-1)
	for range 20 {
		f.appendMany(1)
		base, end := f.sent[len(f.sent)-3].Offset, f.sent[len(f.sent)-1].Offset
		assert.MustTrue(f, base > last && end >= base, "batch from %d to %d after offset %d", base, end, last)
		last = end
		f.verifyBounds()
	}
	f.verify()
}

func testAppendWritesHeader(f *fixture) {
	f.appendMany(3)
	b := f.build(record.PlainTemplate(), []record.Record{rec("a", "1"), rec("b", "2")})
	a, err := f.log.Append(f.ctx, b)
	f.must(err)
	if b.BaseOffset() != a.BaseOffset || b.LeaderEpoch() != f.epoch {
		f.Errorf("batch says offset %d, epoch %d; appended as %+v in epoch %d", b.BaseOffset(), b.LeaderEpoch(), a, f.epoch)
	}
}

func testAppendKeepsNoReference(f *fixture) {
	b := f.build(record.PlainTemplate(), []record.Record{rec("a", "1")})
	a, err := f.log.Append(f.ctx, b)
	f.must(err)
	clear(b)
	got := f.readRange(a.BaseOffset, a.LastOffset+1, 1<<20)
	assert.MustTrue(f, len(got) == 1 && string(got[0].Value) == "1", "read back %v", got)
}

func testInvalidBatch(f *fixture) {
	f.appendMany(2)
	size := f.log.Size()
	good := func() record.Batch { return f.build(record.PlainTemplate(), []record.Record{rec("a", "1")}) }
	magic, short := good(), good()
	magic[16] = 1
	short[11] = 10 // The batch length is below that of an empty batch.
	for name, b := range map[string][]byte{
		"nothing":         nil,
		"a lone byte":     {0},
		"half a batch":    good()[:len(good())/2],
		"header only":     good()[:record.HeaderSize],
		"one byte more":   append(good(), 0),
		"two batches":     append(good(), good()...),
		"older format":    magic,
		"length too low":  short,
		"zeros":           make([]byte, 100),
		"a byte missing":  good()[:len(good())-1],
		"header cut away": good()[:20],
	} {
		if _, err := f.log.Append(f.ctx, b); err == nil {
			f.Errorf("%s: appended", name)
		} else {
			f.wantErr(err, store.ErrInvalidBatch)
		}
	}
	if got := f.log.Size(); got != size {
		f.Errorf("size went from %d to %d", size, got)
	}
	f.verify()
	f.appendMany(1)
	f.verify()
}

func testSizeGrows(f *fixture) {
	for range 10 {
		before := f.log.Size()
		f.append(rec("key", strings.Repeat("v", 300)))
		if got := f.log.Size(); got < before+300 {
			f.Fatalf("size went from %d to %d with a record of 300 bytes", before, got)
		}
	}
}

func testRecordsSurviveReopen(f *fixture) {
	f.appendMany(40)
	f.reopen()
	f.verify()
	assert.True(f, f.log.Size() != 0, "a log with records has no size")
}

func testAppendAfterReopen(f *fixture) {
	for range 4 {
		f.appendMany(7)
		f.flush()
		f.reopen()
		f.verify()
	}
	f.appendMany(1)
	f.verify()
}

func testFlushOnce(f *fixture) {
	f.flush()
	var calls [200]atomic.Int32
	var all sync.WaitGroup
	for i := range calls {
		if i%5 == 0 {
			f.appendMany(1)
		}
		all.Add(1)
		f.log.Flush(func(err error) {
			if calls[i].Add(1) == 1 {
				all.Done()
			}
			assert.NoError(f, err, "flush %d", i)
		})
	}
	all.Wait()
	f.must(f.h.Store.Close())
	for i := range calls {
		if n := calls[i].Load(); n != 1 {
			f.Errorf("flush %d called back %d times", i, n)
		}
	}
}

func testFlushDuringClose(f *fixture) {
	const flushers = 4
	var calls atomic.Int32
	var done, started sync.WaitGroup
	var order sync.Mutex
	for range flushers {
		started.Add(1)
		done.Go(func() {
			started.Done()
			for i := range 50 {
				answered := make(chan struct{})
				if i%3 == 0 {
					// It may be refused; a flush of what is there must not hang.
					order.Lock()
					_, _ = f.log.Append(f.ctx, mustBuild(f.T, "k", "v"))
					order.Unlock()
				}
				f.log.Flush(func(error) {
					calls.Add(1)
					close(answered)
				})
				<-answered
			}
		})
	}
	started.Wait()
	f.must(f.h.Store.Close())
	done.Wait()
	if n := calls.Load(); n != flushers*50 {
		f.Errorf("%d flushes called back %d times", flushers*50, n)
	}
	f.log.Flush(func(err error) { f.wantErr(err, store.ErrClosed) })
}

// mustBuild is for goroutines that share a fixture.
func mustBuild(t *testing.T, key, value string) record.Batch {
	b, err := record.Build(record.PlainTemplate(), []record.Record{recAt(1, key, value)})
	assert.NoError(t, err)
	return b
}

func testSetConfig(f *fixture) {
	for _, cfg := range []store.LogConfig{
		{}, {SegmentBytes: 300, IndexInterval: 1}, {SegmentBytes: 1 << 20, IndexInterval: 1 << 20}, {SegmentAge: 1}, f.h.Config,
	} {
		f.log.SetConfig(cfg)
		f.appendMany(5)
		f.verify()
	}
}
