package redis

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"muster/internal/record"
	"muster/internal/redistest"
	"muster/internal/store"
)

// fill appends until Redis is full, and has more than it may have: then there is
// no room for anything.
func (b *bed) fill(l store.Log) {
	b.Helper()
	b.do("CONFIG", "SET", "maxmemory", "12mb")
	value := strings.Repeat("v", 10<<10)
	for range 10_000 {
		if _, err := l.Append(b.ctx, b.valued(value)); err != nil {
			if !strings.Contains(err.Error(), "OOM") {
				b.Fatal(err)
			}
			b.do("CONFIG", "SET", "maxmemory", "8mb")
			return
		}
	}
	b.Fatal("Redis does not become full")
}

// TestAFullRedisCanBeFreed fills Redis up to its maxmemory. What frees memory
// must work then, else it stays full for good.
func TestAFullRedisCanBeFreed(t *testing.T) {
	t.Parallel()
	end := func(l store.Log) int64 { _, end := l.Bounds(); return end }
	ways := map[string]func(b *bed, l store.Log) error{
		"retention by size": func(b *bed, l store.Log) error {
			return l.Retain(b.ctx, store.Retention{Now: time.Now(), MaxAge: -1, MaxBytes: 1 << 20, NextOffset: end(l)})
		},
		"retention by time": func(b *bed, l store.Log) error {
			return l.Retain(b.ctx, store.Retention{Now: time.Now().Add(time.Hour), MaxAge: time.Minute, MaxBytes: -1, NextOffset: end(l)})
		},
		"trim":   func(b *bed, l store.Log) error { return l.Trim(b.ctx, end(l)) },
		"delete": func(b *bed, l store.Log) error { return b.store.Delete(b.ctx, b.at) },
	}
	for layout, cfg := range allLayouts {
		for name, free := range ways {
			t.Run(layout+" "+name, func(t *testing.T) {
				b := newBedAt(t, redistest.Single(t, "maxmemory-policy noeviction").URL(), cfg)
				b.fill(b.open(1))
				l := b.open(2) // as a broker does that was started anew
				must(t, free(b, l))
				epoch := int32(2)
				redistest.Eventually(t, "room", func() bool { // What was unlinked is freed in the background.
					epoch++
					l = b.open(epoch)
					_, err := l.Append(b.ctx, b.valued("more"))
					return err == nil
				})
				if got := b.values(l); got[len(got)-1] != "more" {
					t.Errorf("the last of %d records is %.20q", len(got), got[len(got)-1])
				}
			})
		}
	}
}

// TestMetadataIsWrittenToAFullRedis is what deleting a topic begins with.
func TestMetadataIsWrittenToAFullRedis(t *testing.T) {
	b := newBedAt(t, redistest.Single(t, "maxmemory-policy noeviction").URL(), inBatches)
	b.fill(b.open(1))
	at := store.TopicPartition{Topic: "__cluster_metadata"}
	shared, err := b.store.OpenShared(b.ctx, at)
	must(t, err)
	must(t, shared.AppendAt(b.ctx, store.Seen{}, b.batchOf(record.Record{Key: []byte("topic")})))
}

// TestAStreamAheadOfTheClockIsLookedAtInAFullRedis has a last id whose sequence
// is nearly too large for an offset, so that the look moves the stream on.
func TestAStreamAheadOfTheClockIsLookedAtInAFullRedis(t *testing.T) {
	b := newBedAt(t, redistest.Single(t, "maxmemory-policy noeviction").URL(), inStreams)
	l := b.open(1)
	ahead := time.Now().Add(time.Hour).UnixMilli()
	b.do("XADD", b.keys().stream, fmt.Sprintf("%d-900", ahead), "value", "v")
	b.do("CONFIG", "SET", "maxmemory", "1kb")
	end, err := l.(store.Refresher).Refresh(b.ctx)
	if want := millis(ahead, 901); err != nil || end != want {
		t.Errorf("the log ends at %d, not %d (%v)", end, want, err)
	}
	b.do("CONFIG", "SET", "maxmemory", "0")
	if id, want := b.do("XADD", b.keys().stream, "*", "value", "v"), fmt.Sprintf("%d-1", ahead+1); id != want {
		t.Errorf("the next entry is %s, not %s", id, want)
	}
}

// TestCompactionThatFillsRedisIsCompleted has Redis full when the copy is whole.
func TestCompactionThatFillsRedisIsCompleted(t *testing.T) {
	url := redistest.Single(t, "maxmemory-policy noeviction").URL()
	b := newBedAt(t, url, inBatches)
	m := &meddler{Client: connect(t, url)}
	m.after = func(words []string) {
		if len(words) > 4 && words[1] == copyScript {
			b.do("CONFIG", "SET", "maxmemory", "1kb")
		}
	}
	l := b.openIn(New(m, Options{Prefix: b.prefix}), 1)
	b.append(l, b.batchOf(record.Record{Key: []byte("twice")}, record.Record{Key: []byte("once")}))
	b.append(l, b.batchOf(record.Record{Key: []byte("twice")}))
	must(t, l.Compact(b.ctx, store.Compaction{Now: time.Now(), NextOffset: 3}))
	if got := b.content(l); len(got) != 2 {
		t.Errorf("%d records are left, not 2", len(got))
	}
}
