package redis

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"muster/internal/record"
)

// TestEveryRecordSurvivesAsAnEntry is about null and empty, headers in order
// and twice, and any timestamp.
func TestEveryRecordSurvivesAsAnEntry(t *testing.T) {
	nullable := rapid.OneOf(rapid.Just([]byte(nil)), rapid.Just([]byte{}), rapid.SliceOfN(rapid.Byte(), 0, 20))
	name := rapid.OneOf(rapid.SampledFrom([]string{"", "key", "value", "timestamp", "header:", "header-null:x", "a"}), rapid.String())
	rapid.Check(t, func(t *rapid.T) {
		want := record.Record{
			Timestamp: rapid.OneOf(rapid.Just(int64(record.NoTimestamp)), rapid.Int64Range(-maxTimestamp, maxTimestamp)).Draw(t, "timestamp"),
			Key:       nullable.Draw(t, "key"), Value: nullable.Draw(t, "value"),
		}
		for range rapid.IntRange(0, 4).Draw(t, "headers") {
			want.Headers = append(want.Headers, record.Header{Key: name.Draw(t, "name"), Value: nullable.Draw(t, "header")})
		}
		var c encoder
		got := decodeRecord(entryID{ms: 99}, c.add(&want))
		if got.Timestamp != want.Timestamp || !same(got.Key, want.Key) || !same(got.Value, want.Value) || !slices.EqualFunc(got.Headers, want.Headers, sameHeader) {
			t.Fatalf("%+v became %+v", want, got)
		}
	})
}

func same(a, b []byte) bool { return bytes.Equal(a, b) && (a == nil) == (b == nil) }

func TestOffsetsAndIDsStandForEachOther(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := numbering{bits: uint(rapid.IntRange(0, maxBits).Draw(t, "bits"))}
		offset := rapid.Int64Min(0).Draw(t, "offset")
		id := n.id(offset)
		if got, ok := n.offset(id); !ok || got != offset || n.atOrAfter(id) != offset {
			t.Fatalf("%d bits: offset %d is id %s is offset %d", n.bits, offset, id, got)
		}
		parsed, err := parseID(id.String())
		if err != nil || parsed != id || id.after().before() != id {
			t.Fatalf("%s: %v %v", id, parsed, err)
		}
	})
	n := numbering{bits: 10}
	for id, want := range map[entryID]int64{
		{ms: 5, seq: 1024}:           6 << 10,
		{ms: math.MaxUint64}:         math.MaxInt64,
		{ms: math.MaxInt64>>10 + 1}:  math.MaxInt64,
		{ms: 5, seq: math.MaxUint64}: 6 << 10,
	} {
		if _, ok := n.offset(id); ok || n.atOrAfter(id) != want {
			t.Errorf("%s: at or after it is %d, want %d", id, n.atOrAfter(id), want)
		}
	}
}

// FuzzDecodeRecord takes entries as anybody may write them. The records that
// become of them must fit into a batch.
func FuzzDecodeRecord(f *testing.F) {
	f.Add(uint64(5), uint64(0), "key", "k", "value", "v", "timestamp", "7")
	f.Add(uint64(math.MaxUint64), uint64(math.MaxUint64), "timestamp", "-9223372036854775808", "timestamp", "x", "header:", "")
	f.Add(uint64(1), uint64(1), "header-null:a", "not empty", "\xff", "\x00", "key", "")
	f.Fuzz(func(t *testing.T, ms, seq uint64, a, b, c, d, e, g string) {
		id := entryID{ms: ms, seq: seq}
		for _, words := range []entry{{a, b, c, d, e, g}, {a, b, c, d, e}, {a, b}, {a}, nil} {
			r := decodeRecord(id, words)
			if r.Key == nil && r.Value != nil && bytes.HasPrefix(r.Value, []byte(`{"`)) && r.Headers == nil && a != fieldValue && c != fieldValue && e != fieldValue {
				if !json.Valid(r.Value) {
					t.Errorf("%q became %q", words, r.Value)
				}
			}
			w := record.NewWriter(nil, record.PlainTemplate())
			w.Add(&r)
			batch := record.Batch(w.Finish())
			if len(batch) != record.HeaderSize+record.Size(&r, r.Timestamp) {
				t.Errorf("%q: a batch of %d bytes", words, len(batch))
			}
			if err := batch.Check(); err != nil {
				t.Error(err)
			}
			if err := batch.Each(func(got *record.Record) error {
				if !same(got.Key, r.Key) || !same(got.Value, r.Value) || got.Timestamp != r.Timestamp {
					t.Errorf("%+v became %+v", r, got)
				}
				return nil
			}); err != nil {
				t.Errorf("%q: %v", words, err)
			}
		}
	})
}

// FuzzParse takes what the hashes of a log may hold.
func FuzzParse(f *testing.F) {
	f.Add("1-2", "[[1,2]]", "1 2 3;1 2 3 4 5", "4.5.6")
	f.Add("18446744073709551615-18446744073709551615", "[[]]", ";;;", "..")
	f.Fuzz(func(t *testing.T, id, epochs, producer, token string) {
		if parsed, err := parseID(id); err == nil {
			if again, err := parseID(parsed.String()); err != nil || again != parsed {
				t.Errorf("%q is %s is %s", id, parsed, again)
			}
		}
		if parsed, err := parseEpochs(epochs); err == nil && len(parsed) > 0 {
			if again, err := parseEpochs(formatEpochs(parsed)); err != nil || !slices.Equal(again, parsed) {
				t.Errorf("%q is %v is %v", epochs, parsed, again)
			}
		}
		if p, err := parseProducer("7", producer); err == nil {
			again, err := parseProducer("7", formatProducer(p))
			if err != nil || again.ID != p.ID || again.Epoch != p.Epoch || !slices.Equal(again.Batches, p.Batches) {
				t.Errorf("%q is %+v is %+v", producer, p, again)
			}
		}
		_, _ = parseToken(token)
		_, _ = parseMetaKey("p", id)
	})
}
