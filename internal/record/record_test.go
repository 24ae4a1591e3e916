package record

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"reflect"
	"runtime"
	"testing"

	"github.com/klauspost/compress/snappy"
	"pgregory.net/rapid"

	"muster/internal/assert"
)

// must ends the test if something fails that has to work.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func sample(n int) []Record {
	recs := make([]Record, n)
	for i := range recs {
		recs[i] = Record{
			OffsetDelta: int32(i), Timestamp: 1_700_000_000_000 + int64(i),
			Key: []byte(fmt.Sprintf("key-%d", i)), Value: bytes.Repeat([]byte{byte(i)}, 100),
			Headers: []Header{{Key: "h", Value: []byte("v")}, {Key: "h", Value: nil}},
		}
	}
	return recs
}

func collect(t testing.TB, b Batch) []Record {
	t.Helper()
	var out []Record
	must(t, b.Each(func(r *Record) error { out = append(out, *r); return nil }))
	return out
}

func TestBuildThenEachGivesTheSameRecordsWithEveryCodec(t *testing.T) {
	for c := None; c <= ZSTD; c++ {
		tmpl := PlainTemplate()
		tmpl.Codec, tmpl.BaseOffset = c, 42
		want := sample(50)
		b, err := Build(tmpl, want)
		must(t, err)
		assert.Must(t, b.ValidateProduced(), "%s", c)
		got := collect(t, b)
		for i := range want {
			want[i].Offset = 42 + int64(i)
		}
		assert.DeepEqual(t, got, want, "%s: records differ", c)
		if b.LastOffset() != 91 || b.MaxTimestamp() != want[49].Timestamp {
			t.Errorf("%s: header says last offset %d, max timestamp %d", c, b.LastOffset(), b.MaxTimestamp())
		}
	}
}

func TestNullAndEmptyKeysAndValuesStayApart(t *testing.T) {
	b, err := Build(PlainTemplate(), []Record{{Key: nil, Value: []byte{}}, {OffsetDelta: 1, Key: []byte{}, Value: nil}})
	must(t, err)
	got := collect(t, b)
	assert.True(t, got[0].Key == nil && got[0].Value != nil && got[1].Key != nil && got[1].Tombstone(), "got %+v", got)
}

func TestXerialFramedSnappyIsRead(t *testing.T) {
	tmpl := PlainTemplate()
	plain, err := Build(tmpl, sample(20))
	must(t, err)
	body := plain[HeaderSize:]
	framed := append(bytes.Clone(xerialMagic), 0, 0, 0, 1, 0, 0, 0, 1)
	for _, part := range [][]byte{body[:100], body[100:]} {
		block := snappy.Encode(nil, part)
		framed = binary.BigEndian.AppendUint32(framed, uint32(len(block)))
		framed = append(framed, block...)
	}
	b := append(bytes.Clone(plain[:HeaderSize]), framed...)
	binary.BigEndian.PutUint32(b[8:], uint32(len(b)-lengthOverhead))
	b[22] |= byte(Snappy)
	Batch(b).seal()
	assert.Equal(t, len(collect(t, b)), 20, "records")
}

func TestSetLogAppendTimeKeepsTheChecksumRight(t *testing.T) {
	b, err := Build(PlainTemplate(), sample(3))
	must(t, err)
	b.SetLogAppendTime(77)
	must(t, b.Check())
	for _, r := range collect(t, b) {
		assert.Equal(t, r.Timestamp, 77, "timestamp")
	}
}

func TestValidateProducedRefusesWhatProducersMayNotSend(t *testing.T) {
	put := func(pos int, v ...byte) func(Batch) { return func(b Batch) { copy(b[pos:], v); b.seal() } }
	cases := []struct {
		name string
		edit func(Batch)
		want error
	}{
		{"flipped bit", func(b Batch) { b[len(b)-1] ^= 1 }, ErrCorrupt},
		{"old magic", func(b Batch) { b[16] = 1 }, ErrMagic},
		{"no records", put(57, 0, 0, 0, 0), ErrInvalid},
		{"count does not fit", put(57, 0, 0, 0, 9), ErrInvalid},
		{"control", put(22, controlBit), ErrInvalid},
		{"log append time", put(22, timestampTypeBit), ErrInvalid},
		{"delete horizon", put(22, deleteHorizonBit), ErrInvalid},
		{"codec 5", put(22, 5), ErrInvalid},
		{"transactional without id", put(22, transactionalBit), ErrInvalid},
		{"id without epoch", put(43, 0, 0, 0, 0, 0, 0, 0, 1), ErrInvalid},
		{"negative length", func(b Batch) { b[8] = 0xff }, ErrCorrupt},
	}
	for _, c := range cases {
		b, err := Build(PlainTemplate(), sample(3))
		must(t, err)
		c.edit(b)
		assert.ErrorIs(t, b.ValidateProduced(), c.want, "%s", c.name)
	}
}

func TestNextSplitsBatchesAndNoticesTruncation(t *testing.T) {
	b, err := Build(PlainTemplate(), sample(3))
	must(t, err)
	two := append(bytes.Clone(b), b...)
	first, rest, err := Next(two)
	assert.MustTrue(t, err == nil && bytes.Equal(first, b) && len(rest) == len(b), "first %d rest %d err %v", len(first), len(rest), err)
	for n := range len(b) {
		if _, _, err := Next(b[:n]); !errors.Is(err, ErrTruncated) {
			t.Fatalf("%d bytes: %v", n, err)
		}
	}
}

func TestSequencesWrapToZero(t *testing.T) {
	for _, c := range []struct{ seq, n, want int32 }{{5, 3, 8}, {math.MaxInt32, 0, math.MaxInt32}, {math.MaxInt32, 1, 0}, {math.MaxInt32 - 1, 4, 2}} {
		assert.Equal(t, AddSequence(c.seq, c.n), c.want, "AddSequence(%d, %d)", c.seq, c.n)
	}
}

func TestAnyRecordsSurviveTheRoundTrip(t *testing.T) {
	gen := rapid.Custom(func(t *rapid.T) Record {
		nullable := func(label string) []byte {
			if rapid.Bool().Draw(t, label+" null") {
				return nil
			}
			b := rapid.SliceOf(rapid.Byte()).Draw(t, label)
			return append([]byte{}, b...)
		}
		r := Record{Timestamp: rapid.Int64Range(0, 1<<45).Draw(t, "ts"), Key: nullable("key"), Value: nullable("value")}
		for range rapid.IntRange(0, 3).Draw(t, "headers") {
			r.Headers = append(r.Headers, Header{Key: rapid.String().Draw(t, "hk"), Value: nullable("hv")})
		}
		return r
	})
	rapid.Check(t, func(t *rapid.T) {
		recs := rapid.SliceOfN(gen, 1, 10).Draw(t, "records")
		for i := range recs {
			recs[i].OffsetDelta, recs[i].Offset = int32(i), int64(i)
		}
		tmpl := PlainTemplate()
		tmpl.Codec = Codec(rapid.IntRange(0, 4).Draw(t, "codec"))
		b, err := Build(tmpl, recs)
		if err != nil {
			t.Fatal(err)
		}
		var got []Record
		if err := b.Each(func(r *Record) error { got = append(got, *r); return nil }); err != nil {
			t.Fatal(err)
		}
		assert.MustDeepEqual(t, got, recs)
		i := 0
		err = b.ScanKeys(func(k *Keyed) error {
			if r := &recs[i]; k.Offset != r.Offset || k.Timestamp != r.Timestamp || k.HasKey != (r.Key != nil) || !bytes.Equal(k.Key, r.Key) || k.Tombstone != r.Tombstone() {
				t.Fatalf("scanned %+v, want %+v", k, r)
			}
			i++
			return nil
		})
		assert.MustTrue(t, err == nil && i == len(recs), "%d records scanned, of %d: %v", i, len(recs), err)
	})
}

func TestFilterKeepsWhatIsWanted(t *testing.T) {
	for c := None; c <= ZSTD; c++ {
		tmpl := PlainTemplate()
		tmpl.Codec, tmpl.BaseOffset = c, 7
		b, err := Build(tmpl, sample(20))
		must(t, err)
		even := func(k *Keyed) bool { return k.Offset%2 == 0 }
		some, err := b.Filter(even)
		must(t, err)
		var want []Record
		for _, r := range collect(t, b) {
			if even(&Keyed{Meta: Meta{Offset: r.Offset}}) {
				want = append(want, r)
			}
		}
		if got := collect(t, some); !reflect.DeepEqual(got, want) || some.Check() != nil || some.Codec() != c {
			t.Errorf("%s: got %+v want %+v", c, got, want)
		}
		if all, err := b.Filter(func(*Keyed) bool { return true }); err != nil || !bytes.Equal(all, b) {
			t.Errorf("%s: all of it: %v, %v", c, all, err)
		}
		if none, err := b.Filter(func(*Keyed) bool { return false }); err != nil || none != nil {
			t.Errorf("%s: none of it: %v, %v", c, none, err)
		}
	}
}

// What is kept of a batch that unpacks to very much takes no more memory than its bytes.
func TestFilterHoldsNothingUnpacked(t *testing.T) {
	if testing.Short() {
		t.Skip("it computes much, in one goroutine")
	}
	tmpl := PlainTemplate()
	tmpl.Codec = ZSTD
	large := Record{OffsetDelta: 1, Key: []byte("k"), Value: make([]byte, 32<<20), Headers: make([]Header, 1<<18)}
	b, err := Build(tmpl, []Record{{Key: []byte("gone")}, large})
	must(t, err)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	kept, err := b.Filter(func(k *Keyed) bool { return k.Offset == 1 })
	runtime.ReadMemStats(&after)
	if err != nil || kept.Count() != 1 || kept.LastOffset() != 1 {
		t.Fatalf("%v, %v", kept[:min(len(kept), HeaderSize)], err)
	}
	if got := collect(t, kept); len(got[0].Value) != 32<<20 || len(got[0].Headers) != 1<<18 {
		t.Error("the record is another one")
	}
	if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 24 {
		t.Errorf("%d MB were taken", took)
	}
}

func TestLargeKeysAreToldApart(t *testing.T) {
	recs := sample(3)
	recs[0].Key = bytes.Repeat([]byte{1}, 3*largeKey)
	recs[1].Key = bytes.Repeat([]byte{2}, 3*largeKey)
	recs[2].Key = bytes.Clone(recs[0].Key)
	b, err := Build(PlainTemplate(), recs)
	must(t, err)
	var keys []string
	must(t, b.ScanKeys(func(k *Keyed) error { keys = append(keys, string(k.Key)); return nil }))
	assert.True(t, keys[0] == keys[2] && keys[0] != keys[1] && len(keys[0]) <= largeKey, "%q", keys)
}

func FuzzBatch(f *testing.F) {
	for c := None; c <= ZSTD; c++ {
		tmpl := PlainTemplate()
		tmpl.Codec = c
		b, err := Build(tmpl, sample(3))
		must(f, err)
		f.Add([]byte(b))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		b, _, err := Next(data)
		if err != nil {
			return
		}
		// The checksum would stop the fuzzer at the door; it is not a defence
		// against a hostile sender.
		b = bytes.Clone(b)
		binary.BigEndian.PutUint32(b[17:], crc32.Checksum(b[crcStart:], castagnoli))
		if b.Check() != nil {
			return
		}
		n := 0
		_ = b.Scan(func(Meta) error { return nil })
		each := b.Each(func(*Record) error { n++; return nil })
		if n > int(b.Count()) {
			t.Fatalf("%d records, header says %d", n, b.Count())
		}
		scanned := 0
		if err := b.ScanKeys(func(*Keyed) error { scanned++; return nil }); each == nil && (err != nil || scanned != n) {
			t.Fatalf("%d records scanned, of %d: %v", scanned, n, err)
		}
		if _, err := b.Filter(func(k *Keyed) bool { return k.Offset%2 == 0 }); each == nil && err != nil {
			t.Fatal(err)
		}
		repacked, err := b.Repack(Packing{Codec: (b.Codec() + 1) % (ZSTD + 1), Level: 1}, 16<<20)
		assert.MustFalse(t, each == nil && err != nil && !errors.Is(err, ErrTooLarge), "%v", err)
		if err == nil && repacked.Check() != nil {
			t.Fatalf("packed anew: %v", repacked.Check())
		}
	})
}

func TestScanTellsWhatEachWould(t *testing.T) {
	for c := None; c <= ZSTD; c++ {
		tmpl := PlainTemplate()
		tmpl.Codec, tmpl.BaseOffset = c, 7
		recs := sample(20)
		recs[3].Key = nil
		b, err := Build(tmpl, recs)
		must(t, err)
		var want, got []Meta
		for _, r := range collect(t, b) {
			want = append(want, Meta{Offset: r.Offset, Timestamp: r.Timestamp, HasKey: r.Key != nil})
		}
		must(t, b.Scan(func(m Meta) error { got = append(got, m); return nil }))
		assert.DeepEqual(t, got, want, "%s", c)
	}
}

func TestEmptiedKeepsAllButTheRecords(t *testing.T) {
	for codec := None; codec <= ZSTD; codec++ {
		tmpl := Template{BaseOffset: 7, LeaderEpoch: 3, Codec: codec, Transactional: true, ProducerID: 5, ProducerEpoch: 2, BaseSequence: 9}
		b, err := Build(tmpl, []Record{{Timestamp: 50, Key: []byte("k")}, {OffsetDelta: 1, Timestamp: 60}})
		must(t, err)
		e := b.Emptied()
		if err := e.Check(); err != nil || e.Count() != 0 || len(e) != HeaderSize {
			t.Errorf("%s: %x (%v)", codec, e, err)
		}
		if e.LastOffset() != 8 || e.LastSequence() != 10 || e.ProducerEpoch() != 2 || e.MaxTimestamp() != 60 || !e.Transactional() || e.LeaderEpoch() != 3 {
			t.Errorf("%s: header %x, was %x", codec, e, b[:HeaderSize])
		}
		assert.NoError(t, e.Each(func(*Record) error { return errors.New("a record") }), "%s", codec)
		assert.NoError(t, e.Scan(func(Meta) error { return errors.New("a record") }), "%s", codec)
	}
}
