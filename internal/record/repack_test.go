package record

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"runtime"
	"testing"

	"muster/internal/assert"
)

// levels has the ends of what Kafka allows of each codec, and its default.
var levels = map[Codec][]int{
	None: {0}, Snappy: {0}, Gzip: {1, 9, DefaultGzipLevel}, LZ4: {1, 17, DefaultLZ4Level}, ZSTD: {-131072, 22, DefaultZSTDLevel},
}

func TestRepackKeepsAllButThePacking(t *testing.T) {
	if testing.Short() {
		t.Skip("it computes much, in one goroutine")
	}
	want := sample(900) // More than one block of snappy.
	for from := None; from <= ZSTD; from++ {
		tmpl := Template{
			BaseOffset: 77, LeaderEpoch: 3, Codec: from, Transactional: true,
			ProducerID: 9, ProducerEpoch: 4, BaseSequence: 5, MaxTimestamp: NoTimestamp,
		}
		b, err := Build(tmpl, want)
		must(t, err)
		before := collect(t, b)
		copied := bytes.Clone(b)
		for to, ls := range levels {
			for _, level := range ls {
				got, err := b.Repack(Packing{to, level}, 1<<20)
				assert.Must(t, err, "%s to %s", from, to)
				if err := got.Check(); err != nil || got.Codec() != to {
					t.Errorf("%s to %s at %d: codec %s, %v", from, to, level, got.Codec(), err)
				}
				assert.DeepEqual(t, collect(t, got), before, "%s to %s at %d: records differ", from, to, level)
				wantHead, gotHead := TemplateOf(b), TemplateOf(got)
				wantHead.Codec = to
				if gotHead != wantHead || got.Count() != b.Count() || got.BaseTimestamp() != b.BaseTimestamp() {
					t.Errorf("%s to %s at %d: header %+v, want %+v", from, to, level, gotHead, wantHead)
				}
				assert.False(t, to == from && &got[0] != &b[0], "%s was packed again", from)
			}
		}
		assert.True(t, bytes.Equal(b, copied), "the batch in %s was changed", from)
	}
}

func TestRepackHonoursTheLevel(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	value := make([]byte, 200_000)
	for i := range value { // Text of a kind that takes effort.
		value[i] = "abcdefgh    "[rng.IntN(12)]
		if i > 500 && rng.IntN(4) > 0 {
			value[i] = value[i-1-rng.IntN(500)]
		}
	}
	b, err := Build(PlainTemplate(), []Record{{Value: value}})
	must(t, err)
	for codec, ends := range map[Codec][2]int{Gzip: {1, 9}, LZ4: {DefaultLZ4Level, 17}, ZSTD: {1, 22}} {
		fast, err := b.Repack(Packing{codec, ends[0]}, 1<<20)
		must(t, err)
		small, err := b.Repack(Packing{codec, ends[1]}, 1<<20)
		must(t, err)
		if len(small) >= len(fast) {
			t.Errorf("%s: %d bytes at level %d, %d at %d", codec, len(fast), ends[0], len(small), ends[1])
		}
	}
}

func TestLevelZeroOfZstdIsItsDefault(t *testing.T) {
	if zstdLevel(0) != zstdLevel(DefaultZSTDLevel) || zstdLevel(0) == zstdLevel(1) {
		t.Errorf("0 is %v, 1 is %v, the default is %v", zstdLevel(0), zstdLevel(1), zstdLevel(DefaultZSTDLevel))
	}
}

// A small batch that unpacks to very much takes neither memory nor a place in
// the log.
func TestRepackIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("it packs 64 MB, alone")
	}
	for _, from := range []Codec{Gzip, LZ4, ZSTD, Snappy} {
		tmpl := PlainTemplate()
		tmpl.Codec = from
		size := 64 << 20
		if from == Snappy {
			size = 8 << 20 // It packs no tighter than that into a batch that is allowed.
		}
		b, err := Build(tmpl, []Record{{Value: make([]byte, size)}})
		must(t, err)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err = b.Repack(Packing{None, 0}, 1<<20)
		runtime.ReadMemStats(&after)
		assert.ErrorIs(t, err, ErrTooLarge, "%s", from)
		if used := after.TotalAlloc - before.TotalAlloc; used > 24<<20 {
			t.Errorf("%s: %d bytes were allocated", from, used)
		}
	}
	b, err := Build(PlainTemplate(), sample(10))
	must(t, err)
	packed, err := b.Repack(Packing{Gzip, 9}, len(b))
	must(t, err)
	if _, err := packed.Repack(Packing{None, 0}, len(b)); err != nil {
		t.Errorf("a batch of just the allowed size: %v", err)
	}
	if _, err := packed.Repack(Packing{None, 0}, len(b)-1); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a batch of one byte too many: %v", err)
	}
}

func TestRepackRefusesWhatIsNotRecords(t *testing.T) {
	for from := None; from <= ZSTD; from++ {
		tmpl := PlainTemplate()
		tmpl.Codec = from
		good, err := Build(tmpl, sample(3))
		must(t, err)
		to := Packing{(from + 1) % 5, 1}
		for name, spoil := range map[string]func(Batch) Batch{
			"a record too few":  func(b Batch) Batch { b[60]++; return b },
			"a record too many": func(b Batch) Batch { b[60]--; return b },
			"cut short":         func(b Batch) Batch { return b[:len(b)-12] },
			"nothing":           func(b Batch) Batch { return b[:HeaderSize] },
			"noise":             func(b Batch) Batch { return append(b[:HeaderSize], "\x80\x80\x80\x80noise"...) },
		} {
			if _, err := spoil(bytes.Clone(good)).Repack(to, 1<<20); !errors.Is(err, ErrCorrupt) {
				t.Errorf("%s, %s: %v", from, name, err)
			}
		}
	}
}
