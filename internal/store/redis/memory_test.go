package redis

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"muster/internal/record"
	"muster/internal/redistest"
	"muster/internal/store"
)

// TestMemoryPerRecord holds docs/redis.md to its word about what a record
// takes in memory beyond its own bytes.
func TestMemoryPerRecord(t *testing.T) {
	if testing.Short() {
		t.Skip("it is Redis that is measured")
	}
	ctx, client := context.Background(), connect(t, redistest.Shared(t, redistest.KindSingle).URL())
	const records = 5000
	for _, c := range []struct {
		layout   store.Layout
		value    int
		perBatch int
		limit    int // bytes beyond the value
	}{
		{store.LayoutIndexed, 100, 100, 60}, {store.LayoutIndexed, 1024, 100, 400},
		{store.LayoutIndexed, 100, 1, 200}, {store.LayoutIndexed, 1024, 1, 600},
		{store.LayoutStream, 100, 100, 60}, {store.LayoutStream, 1024, 100, 400},
		{store.LayoutLog, 100, 100, 40}, {store.LayoutLog, 1024, 100, 150},
		{store.LayoutStream, 100, 1, 60}, {store.LayoutStream, 1024, 1, 400},
		{store.LayoutLog, 100, 1, 150}, {store.LayoutLog, 1024, 1, 400},
	} {
		s := New(client, Options{Prefix: redistest.Prefix(t), Timeout: patience})
		at := store.TopicPartition{Topic: "t"}
		l, err := s.Open(ctx, at, 1, store.LogConfig{Layout: c.layout})
		must(t, err)
		for range records / c.perBatch {
			recs := make([]record.Record, c.perBatch)
			for i := range recs {
				recs[i] = record.Record{OffsetDelta: int32(i), Timestamp: time.Now().UnixMilli(), Value: bytes.Repeat([]byte("v"), c.value)}
			}
			batch, err := record.Build(record.PlainTemplate(), recs)
			must(t, err)
			_, err = l.Append(ctx, batch)
			must(t, err)
		}
		var used int64
		for _, key := range []string{logKeys(s.prefix, at).stream, logKeys(s.prefix, at).index} {
			n, err := client.Do(ctx, client.B().MemoryUsage().Key(key).Samples(0).Build()).AsInt64()
			if !rueidis.IsRedisNil(err) {
				must(t, err)
			}
			used += n
		}
		per := int(used) / records
		t.Logf("layout %s, values of %d bytes, batches of %d: %d bytes per record", c.layout, c.value, c.perBatch, per)
		if per > c.value+c.limit {
			t.Errorf("layout %s: a value of %d bytes takes %d", c.layout, c.value, per)
		}
	}
}
