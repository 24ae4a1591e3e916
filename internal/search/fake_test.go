package search

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// fakeLog is a partition in memory: batches with gaps between them.
type fakeLog struct {
	batches [][]Record
	start   int64
	end     int64
	fails   error
}

func (l *fakeLog) Bounds(context.Context) (start, end int64, err error) { return l.start, l.end, nil }

func (l *fakeLog) At(_ context.Context, t time.Time) (int64, error) {
	for _, r := range l.all() {
		if r.Timestamp >= t.UnixMilli() {
			return r.Offset, nil
		}
	}
	return l.end, nil
}

func (l *fakeLog) all() []Record { return slices.Concat(l.batches...) }

func (l *fakeLog) Density() float64 { return 1 }

func (l *fakeLog) Read(ctx context.Context, from int64, most int, f func(*Record) bool) (Chunk, error) {
	c := Chunk{Base: from, Next: from}
	if l.fails != nil {
		return c, l.fails
	}
	if from < l.start {
		c.Next = l.start
		return c, nil
	}
	for i, b := range l.batches {
		if b[len(b)-1].Offset < from {
			continue
		}
		if c.Bytes == 0 {
			c.Base = b[0].Offset
		} else if c.Bytes+len(b)*100 > most/500 { // So that a chunk is a few batches.
			return c, nil
		}
		for j := range b {
			if !f(&b[j]) || ctx.Err() != nil {
				c.Bytes += len(b) * 100
				return c, nil
			}
		}
		c.Bytes += len(b) * 100
		if c.Next = b[len(b)-1].Offset + 1; i == len(l.batches)-1 {
			c.Next = l.end
		}
	}
	return c, nil
}

// aLog makes a partition with records whose values have their number, every third of
// which is a multiple of three.
func aLog(r *rand.Rand, partition int32, n int, sparse bool) *fakeLog {
	l := &fakeLog{start: r.Int64N(5)}
	next, at := l.start, int64(1_000_000)
	for i := 0; i < n; {
		if r.IntN(3) == 0 {
			next += r.Int64N(20)
		}
		if sparse {
			next += r.Int64N(1 << 40)
		}
		var b []Record
		for range 1 + r.IntN(10) {
			at += r.Int64N(50)
			b = append(b, Record{
				Partition: partition, Offset: next, Timestamp: at + r.Int64N(30), Key: fmt.Appendf(nil, "k%d", i%7),
				Value: fmt.Appendf(nil, `{"n":%d,"of":{"three":%v}}`, i, i%3 == 0),
			})
			next++
			i++
		}
		l.batches = append(l.batches, b)
	}
	l.end = next + r.Int64N(3)
	return l
}

func aFilter(t *testing.T, s Spec) *Filter {
	t.Helper()
	f, err := NewFilter(&s, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func limits(records int) Limits {
	return Limits{Records: records, Bytes: 1 << 40, Page: 1 << 30, Shown: 1 << 10, Time: time.Hour}
}
