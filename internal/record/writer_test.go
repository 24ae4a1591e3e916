package record

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"

	"pgregory.net/rapid"

	"muster/internal/assert"
)

func TestSizeIsWhatARecordTakes(t *testing.T) {
	nullable := rapid.OneOf(rapid.Just([]byte(nil)), rapid.SliceOfN(rapid.Byte(), 0, 300))
	rapid.Check(t, func(t *rapid.T) {
		r := Record{
			OffsetDelta: rapid.Int32Min(0).Draw(t, "delta"), Timestamp: rapid.Int64Range(-1<<60, 1<<60).Draw(t, "timestamp"),
			Key: nullable.Draw(t, "key"), Value: nullable.Draw(t, "value"),
		}
		for range rapid.IntRange(0, 3).Draw(t, "headers") {
			r.Headers = append(r.Headers, Header{Key: rapid.String().Draw(t, "name"), Value: nullable.Draw(t, "header")})
		}
		base := rapid.Int64Range(-1<<60, 1<<60).Draw(t, "base")
		if got, want := Size(&r, base), len(appendRecord(nil, &r, base)); got != want {
			t.Fatalf("Size says %d, the record takes %d", got, want)
		}
	})
}

func TestVarintSize(t *testing.T) {
	for _, n := range []int64{0, 1, -1, 63, 64, -64, -65, 8191, 8192, math.MaxInt32, math.MaxInt64, math.MinInt64} {
		assert.Equal(t, varintSize(n), len(binary.AppendVarint(nil, n)), "%d: bytes", n)
	}
}

func TestWriterAppendsWholeBatches(t *testing.T) {
	recs := []Record{{Timestamp: 5, Key: []byte("k"), Value: []byte("v")}, {OffsetDelta: 1, Timestamp: 9}}
	want, err := Build(PlainTemplate(), recs)
	must(t, err)
	var out []byte
	for range 3 {
		w := NewWriter(out, PlainTemplate())
		for i := range recs {
			w.Add(&recs[i])
		}
		out = w.Finish()
	}
	assert.True(t, bytes.Equal(out, bytes.Repeat(want, 3)), "three batches are not what Build makes, three times")
	assert.NoError(t, want.Check())
}
