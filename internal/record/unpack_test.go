package record

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"

	"muster/internal/assert"
)

// packed builds a batch of so many records of so many zeros.
func packed(t testing.TB, c Codec, n, size int) Batch {
	t.Helper()
	tmpl := PlainTemplate()
	tmpl.Codec = c
	recs := make([]Record, n)
	for i := range recs {
		recs[i] = Record{OffsetDelta: int32(i), Timestamp: 5, Value: make([]byte, size)}
	}
	b, err := Build(tmpl, recs)
	must(t, err)
	return b
}

func TestUnpackFillsTheBufferAndNoMore(t *testing.T) {
	if testing.Short() {
		t.Skip("it computes much, in one goroutine")
	}
	for c := None; c <= ZSTD; c++ {
		b := packed(t, c, 300, 1000)
		plain := len(packed(t, None, 300, 1000)) - HeaderSize
		for _, room := range []int{plain, plain + 1, 2 * plain} {
			src, err := b.Unpack(make([]byte, 7, room))
			assert.MustTrue(t, err == nil && len(src) == plain, "%s: %d bytes in a buffer of %d, %v", c, len(src), room, err)
			var got []Record
			assert.Must(t, b.EachIn(src, func(r *Record) error { got = append(got, *r); return nil }), "%s", c)
			assert.DeepEqual(t, got, collect(t, b), "%s: other records than Each", c)
		}
		for _, room := range []int{0, 1, plain / 2, plain - 1} {
			if _, err := b.Unpack(make([]byte, 0, room)); c != None && !errors.Is(err, ErrTooLarge) {
				t.Errorf("%s: %v in a buffer of %d of %d bytes", c, err, room, plain)
			}
		}
	}
}

func TestUnpackRefusesWhatIsCutShort(t *testing.T) {
	for c := Gzip; c <= ZSTD; c++ {
		b := packed(t, c, 300, 1000)
		cut := bytes.Clone(b[:len(b)-(len(b)-HeaderSize)/2])
		if _, err := Batch(cut).Unpack(make([]byte, 0, 1<<20)); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %v", c, err)
		}
	}
}

// A frame of zstd may ask for a window of any size, whatever is in it.
func TestUnpackAllocatesNothingThatABatchAsksFor(t *testing.T) {
	if testing.Short() {
		t.Skip("it is a benchmark")
	}
	frame := zstdFrame(17, make([]byte, 1000)) // 128 MB
	b := slices.Concat(packed(t, ZSTD, 1, 1)[:HeaderSize], frame)
	dst := make([]byte, 0, 2000)
	if src, err := b.Unpack(dst); err != nil || len(src) != 1000 {
		t.Fatalf("%d bytes, %v", len(src), err)
	}
	n := testing.Benchmark(func(bench *testing.B) {
		for bench.Loop() {
			if _, err := b.Unpack(dst); err != nil {
				bench.Fatal(err)
			}
		}
	}).AllocedBytesPerOp()
	assert.True(t, n <= 1<<20, "%d bytes are allocated for 1000", n)
}

func FuzzUnpack(f *testing.F) {
	for c := None; c <= ZSTD; c++ {
		f.Add([]byte(packed(f, c, 3, 100)), uint16(1000))
	}
	f.Fuzz(func(t *testing.T, data []byte, room uint16) {
		if len(data) < HeaderSize {
			return
		}
		b := Batch(data)
		got, err := b.Unpack(make([]byte, 0, room))
		if err != nil {
			return
		}
		if want, err := decompress(b.Codec(), b[HeaderSize:]); err != nil || !bytes.Equal(got, want) {
			t.Fatal(fmt.Errorf("%s: %d bytes, otherwise %d: %w", b.Codec(), len(got), len(want), err))
		}
	})
}

// A block that does not fit into the buffer is told as what it is, whatever the decoder calls it.
func TestUnpackSaysThatABlockDoesNotFit(t *testing.T) {
	value := make([]byte, 300_000)
	for i := range value {
		value[i] = byte(i * i >> 7) // It takes sequences.
	}
	tmpl := PlainTemplate()
	tmpl.Codec = ZSTD
	b, err := Build(tmpl, []Record{{Value: value}})
	must(t, err)
	for size := 1000; size < 300_000; size += 7777 {
		if _, err := b.Unpack(make([]byte, 0, size)); !errors.Is(err, ErrTooLarge) {
			t.Fatalf("into %d bytes: %v", size, err)
		}
	}
	if src, err := b.Unpack(make([]byte, 0, 310_000)); err != nil || len(src) < len(value) {
		t.Errorf("%d bytes, %v", len(src), err)
	}
}
