package redis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"muster/internal/record"
	"muster/internal/store"
)

// meddler is a client that lets a test do something after a command.
type meddler struct {
	rueidis.Client
	after func(words []string)
}

func (m *meddler) Do(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult {
	words := slices.Clone(cmd.Commands())
	r := m.Client.Do(ctx, cmd)
	m.after(words)
	return r
}

// losing makes a store whose compaction loses the copy that it writes: after the
// first part of it, or after all.
func (b *bed) losing(last bool) *Store {
	client := connect(b.T, single(b.T))
	done := false
	m := &meddler{Client: client}
	m.after = func(words []string) {
		if len(words) < 5 || words[1] != copyScript || done {
			return
		}
		whole := !strings.HasPrefix(b.do("XREVRANGE", words[4], "+", "-", "COUNT", "1"), "[["+fmt.Sprint(3001))
		if done = whole != last; done {
			b.do("UNLINK", words[4])
		}
	}
	s := New(m, Options{Prefix: b.prefix})
	b.Cleanup(func() { _ = s.Close() })
	return s
}

// TestCompactionKeepsTheLogIfItsCopyVanished loses the copy in the midst of the
// compaction, as an eviction or an expiry would.
func TestCompactionKeepsTheLogIfItsCopyVanished(t *testing.T) {
	for name, atEnd := range map[string]bool{"in the midst": false, "at the end": true} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, inBatches)
			l := b.openIn(b.losing(atEnd), 1)
			// The first batch becomes another, so that the log is written anew.
			b.append(l, b.batchOf(record.Record{Key: []byte("twice")}, record.Record{Key: []byte("once"), Value: []byte("0")}))
			for i := range 2998 {
				b.append(l, b.batchOf(record.Record{Key: fmt.Append(nil, "k", i), Value: fmt.Append(nil, i)}))
			}
			b.append(l, b.batchOf(record.Record{Key: []byte("twice"), Value: []byte("2")}))
			size := l.Size()
			err := l.Compact(b.ctx, store.Compaction{Now: time.Now(), NextOffset: 3001})
			if !errors.Is(err, store.ErrStorage) || !strings.Contains(err.Error(), "copy") {
				t.Errorf("a compaction without a whole copy returned %v", err)
			}
			if got := b.values(l); len(got) != 3001 || l.Size() != size {
				t.Fatalf("%d records of 3001 and %d bytes of %d are left", len(got), l.Size(), size)
			}
			if keys := b.do("KEYS", "*"+b.prefix+"*:new*"); keys != "[]" {
				t.Errorf("keys %s remain", keys)
			}
			must(t, l.Compact(b.ctx, store.Compaction{Now: time.Now(), NextOffset: 3001}))
			if got := b.values(l); len(got) != 3000 {
				t.Errorf("%d records of 3000 are left by the next compaction", len(got))
			}
		})
	}
}

func TestCompactionOfASharedLogKeepsItIfItsCopyVanished(t *testing.T) {
	b := newBed(t, inBatches)
	s, err := b.losing(false).OpenShared(b.ctx, b.at)
	must(t, err)
	var end store.Seen
	add := func(recs ...record.Record) {
		batch := b.batchOf(recs...)
		must(t, s.AppendAt(b.ctx, end, batch))
		end = seen(batch)
	}
	add(record.Record{Key: []byte("twice")}, record.Record{Key: []byte("once"), Value: []byte("0")})
	for i := range 2998 {
		add(record.Record{Key: fmt.Append(nil, "k", i), Value: fmt.Append(nil, i)})
	}
	add(record.Record{Key: []byte("twice"), Value: []byte("2")})
	if err := s.Compact(b.ctx, end.Next); !errors.Is(err, store.ErrStorage) {
		t.Errorf("a compaction without a whole copy returned %v", err)
	}
	if n := b.do("XLEN", b.keys().stream); n != "3000" {
		t.Errorf("%s of 3000 batches are left", n)
	}
}

// TestTombstonesStayForDeleteRetentionAfterTheyBecameClean opens the log again
// between the passes: when each of them was is remembered.
func TestTombstonesStayForDeleteRetentionAfterTheyBecameClean(t *testing.T) {
	for name, cfg := range allLayouts {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, cfg)
			began := time.Now().Add(24 * time.Hour) // so that what is forgotten counts as long ago
			pass := func(epoch int32, after time.Duration, tombstone bool) {
				t.Helper()
				l := b.open(epoch)
				b.append(l, b.batchOf(record.Record{Timestamp: 1, Key: fmt.Append(nil, "k", epoch), Value: []byte("v")}))
				_, end := l.Bounds()
				must(t, l.Compact(b.ctx, store.Compaction{Now: began.Add(after), NextOffset: end, DeleteRetention: time.Hour}))
				found := slices.ContainsFunc(b.content(l), func(r record.Record) bool { return string(r.Key) == "gone" })
				if found != tombstone {
					t.Errorf("after %v the tombstone is there: %v", after, found)
				}
			}
			b.append(b.open(1), b.batchOf(record.Record{Timestamp: 1, Key: []byte("gone")}))
			pass(2, 0, true)
			pass(3, 30*time.Minute, true)
			pass(4, 59*time.Minute, true)
			pass(5, 61*time.Minute, false)
		})
	}
}

func TestPassesThatAreNotThereCountAsNow(t *testing.T) {
	for text, want := range map[string]string{"": "40@7", "nonsense": "40@7", "30@1": "40@7", "30@1 40@2": "30@1 40@2"} {
		c, err := loadCleaned(map[string]string{"cleaned": "40", "clean": "5", "passes": text}, 7)
		if err != nil || c.passes.String() != want || c.to != 40 || c.bytes != 5 {
			t.Errorf("%q is read as %v, %v", text, c, err)
		}
	}
	if c, err := loadCleaned(nil, 7); err != nil || c.to != 0 || len(c.passes) != 0 {
		t.Errorf("nothing is read as %v, %v", c, err)
	}
}
