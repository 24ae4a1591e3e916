package record

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"

	"muster/internal/assert"
)

func through(r io.Reader) io.Reader { return r }

// Walk comes by the same records as Each, whatever the codec, and of large ones by their
// beginning.
func TestWalkComesByWhatEachDoes(t *testing.T) {
	records := []Record{
		{Key: []byte("a"), Value: []byte("one"), Timestamp: 5, Headers: []Header{{"h", []byte("x")}, {"null", nil}}},
		{Key: nil, Value: []byte{}, Timestamp: 6},
		{Key: []byte{}, Value: nil, Timestamp: 7},
		{Key: []byte("large"), Value: bytes.Repeat([]byte("v"), 5000), Timestamp: 8, Headers: []Header{{"h", nil}}},
		{Key: bytes.Repeat([]byte("k"), 5000), Value: []byte("behind"), Timestamp: 9},
		{Key: []byte("z"), Value: []byte("last"), Timestamp: 10},
	}
	for i := range records {
		records[i].OffsetDelta = int32(i)
	}
	for codec := None; codec <= ZSTD; codec++ {
		tpl := PlainTemplate()
		tpl.Codec = codec
		b, err := Build(tpl, records)
		must(t, err)
		b.SetBaseOffset(100)
		var want, got []string
		if err := b.Each(func(r *Record) error {
			want = append(want, fmt.Sprintf("%d %d %q %q %v %v %q", r.Offset, r.Timestamp, r.Key, r.Value, r.Key == nil, r.Value == nil, r.Headers))
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if err := b.Walk(1<<20, through, func(r *Walked) error {
			assert.True(t, !r.Cut && r.KeySize == len(r.Key) && r.ValueSize == len(r.Value), "%v: %+v", codec, r)
			got = append(got, fmt.Sprintf("%d %d %q %q %v %v %q", r.Offset, r.Timestamp, r.Key, r.Value, r.Key == nil, r.Value == nil, r.Headers))
			return nil
		}); err != nil || !slices.Equal(got, want) {
			t.Errorf("%v: %v\n%q\n%q", codec, err, got, want)
		}
		if codec == None {
			continue // What is in memory anyway is shown whole.
		}
		n := 0
		if err := b.Walk(1000, through, func(r *Walked) error {
			if large := n == 3 || n == 4; r.Cut != large || r.Offset != int64(100+n) || len(r.Key)+len(r.Value) > 1000 || n == 3 && (r.ValueSize != 5000 || string(r.Key) != "large" || len(r.Value) < 900) || n == 4 && r.KeySize != 5000 {
				t.Errorf("%v: record %d at %d has %d of %d and %d of %d bytes, cut %v", codec, n, r.Offset, len(r.Key), r.KeySize, len(r.Value), r.ValueSize, r.Cut)
			}
			n++
			return nil
		}); err != nil || n != len(records) {
			t.Errorf("%v: %d records, %v", codec, n, err)
		}
		enough := errors.New("enough")
		assert.ErrorIs(t, b.Walk(1000, through, func(*Walked) error { return enough }), enough, "%v", codec)
		if err := b.Walk(1000, func(io.Reader) io.Reader { return bytes.NewReader(nil) }, func(*Walked) error { return nil }); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%v, of nothing: %v", codec, err)
		}
	}
}

// Whatever the bytes, a walk ends, and holds no more than it may.
func FuzzWalk(f *testing.F) {
	for codec := None; codec <= ZSTD; codec++ {
		tpl := PlainTemplate()
		tpl.Codec = codec
		b, err := Build(tpl, []Record{{Key: []byte("k"), Value: bytes.Repeat([]byte("v"), 300)}, {Value: []byte("x")}})
		must(f, err)
		f.Add([]byte(b))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		batch, _, err := Next(b)
		if err != nil {
			return
		}
		_ = batch.Walk(100, through, func(r *Walked) error {
			assert.MustFalse(t, batch.Codec() != None && len(r.Key)+len(r.Value) > 100, "it holds %d bytes", len(r.Key)+len(r.Value))
			return nil
		})
	})
}

// Headers take far more memory than the bytes that they are in: of a record with very many
// none is held, packed or not.
func TestWalkHoldsNoRecordOfVeryManyHeaders(t *testing.T) {
	for n, cut := range map[int]bool{maxWalkedHeaders: false, maxWalkedHeaders + 1: true} {
		for _, codec := range []Codec{None, Gzip} {
			tpl := PlainTemplate()
			tpl.Codec = codec
			b, err := Build(tpl, []Record{{Key: []byte("k"), Value: []byte("v"), Headers: make([]Header, n)}})
			must(t, err)
			if err := b.Walk(1<<20, through, func(r *Walked) error {
				if r.Cut != cut || (len(r.Headers) == 0) != cut || string(r.Key) != "k" || string(r.Value) != "v" || r.KeySize != 1 || r.ValueSize != 1 {
					t.Errorf("%v, %d headers: %d, %+v", codec, n, len(r.Headers), r.Cut)
				}
				return nil
			}); err != nil {
				t.Error(err)
			}
		}
	}
}

// A batch that is not packed is refused for what Each refuses it for.
func TestWalkRefusesPlainBatchesThatAreCorrupt(t *testing.T) {
	whole, err := Build(PlainTemplate(), []Record{{Key: []byte("k")}, {Value: []byte("v"), OffsetDelta: 1}})
	must(t, err)
	for name, b := range map[string]Batch{
		"cut short": whole[:len(whole)-1], "more follows": append(slices.Clone(whole), 0), "no records": whole[:HeaderSize],
	} {
		each := b.Each(func(*Record) error { return nil })
		if err := b.Walk(1<<20, through, func(*Walked) error { return nil }); !errors.Is(err, ErrCorrupt) || !errors.Is(each, ErrCorrupt) {
			t.Errorf("%s: %v, and of Each %v", name, err, each)
		}
	}
}

// zstdFrame is a frame with one block that is not packed, and a window of 1 KB << log.
func zstdFrame(log byte, content []byte) []byte {
	block := uint32(1 | len(content)<<3)
	return append([]byte{0x28, 0xb5, 0x2f, 0xfd, 0, log << 3, byte(block), byte(block >> 8), byte(block >> 16)}, content...)
}

// A few bytes of zstd can ask for a very large window. Who walks is told of it before, and
// is not asked for more later.
func TestWalkHoldsNoLargerWindowThanItSays(t *testing.T) {
	plain, err := Build(PlainTemplate(), []Record{{Key: []byte("k")}, {Value: []byte("v"), OffsetDelta: 1}})
	must(t, err)
	tpl := PlainTemplate()
	tpl.Codec = ZSTD
	packed, err := Build(tpl, []Record{{Key: []byte("k")}, {Value: []byte("v"), OffsetDelta: 1}})
	must(t, err)
	half := HeaderSize + (len(plain)-HeaderSize)/2
	const small, large, huge = 0, 14, 20 // 1 KB, 16 MB, 1 GB
	for name, c := range map[string]struct {
		first, second byte
		memory        int64
		fine          bool
	}{
		"small": {small, small, smallWindow, true}, "large": {large, large, 16 << 20, true}, "large, then small": {large, small, 16 << 20, true},
		"small, then large": {small, large, smallWindow, false}, "huge": {huge, small, MaxDecompressed, false},
	} {
		b := Batch(slices.Concat([]byte(packed[:HeaderSize]), zstdFrame(c.first, plain[HeaderSize:half]), zstdFrame(c.second, plain[half:])))
		n := 0
		err := b.Walk(1<<20, through, func(*Walked) error { n++; return nil })
		if (err == nil) != c.fine || c.fine && n != 2 || b.WalkMemory() != c.memory {
			t.Errorf("%s: %v, %d records, with %d bytes", name, err, n, b.WalkMemory())
		}
	}
	for codec, want := range map[Codec]int64{None: 0, Gzip: 0, LZ4: 0, Snappy: 64 * int64(len(plain))} {
		b := slices.Clone(plain)
		b[22] = byte(codec)
		assert.Equal(t, b.WalkMemory(), want, "%v: bytes", codec)
	}
}

// A frame that says how much is in it needs no window of its own, but room for all of it.
func TestWalkMemoryOfAFrameThatSaysItsSize(t *testing.T) {
	single := []byte{0x28, 0xb5, 0x2f, 0xfd, 0xa0, 0, 0, 0, 1, 1, 0, 0} // Four bytes for the size: 16 MB.
	huge := []byte{0x28, 0xb5, 0x2f, 0xfd, 0xe0, 255, 255, 255, 255, 255, 255, 255, 255, 1, 0, 0}
	for want, src := range map[uint64][]byte{16 << 20: single, MaxDecompressed: huge, smallWindow: nil} {
		assert.Equal(t, zstdWindow(src), want, "bytes")
	}
}
