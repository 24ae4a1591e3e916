package redis

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"muster/internal/record"
	"muster/internal/redistest"
	"muster/internal/store"
)

func (b *bed) openShared(s *Store) store.SharedLog {
	b.Helper()
	l, err := s.OpenShared(b.ctx, b.at)
	must(b.T, err)
	return l
}

// fold reads a shared log on and returns the newest value of every key, the
// number of records, and where the log ends.
func (b *bed) fold(l store.SharedLog, at store.Seen, wait time.Duration) (state map[string]string, records int, end store.Seen) {
	b.Helper()
	state = map[string]string{}
	for {
		batches, err := l.Read(b.ctx, at, wait)
		if errors.Is(err, store.ErrCompacted) {
			return b.fold(l, store.Seen{}, wait)
		}
		must(b.T, err)
		if len(batches) == 0 {
			return state, records, at
		}
		for len(batches) > 0 {
			batch, rest, err := record.Next(batches)
			must(b.T, err)
			must(b.T, batch.Each(func(r *record.Record) error {
				state[string(r.Key)] = string(r.Value)
				records++
				return nil
			}))
			batches, at = rest, seen(batch)
		}
		wait = 0
	}
}

// seen is how far a log was read whose last batch is this one.
func seen(b record.Batch) store.Seen { return store.Seen{Next: b.LastOffset() + 1, CRC: b.CRC()} }

func (b *bed) change(key, value string, more ...string) record.Batch {
	recs := []record.Record{{Timestamp: time.Now().UnixMilli(), Key: []byte(key), Value: []byte(value)}}
	for _, k := range more {
		recs = append(recs, record.Record{Timestamp: time.Now().UnixMilli(), Key: []byte(k), Value: []byte(value)})
	}
	return b.batchOf(recs...)
}

// TestSharedLogTakesOneOfManyAtATime lets several stores append what they read
// plus one, and compact. No addition is lost.
func TestSharedLogTakesOneOfManyAtATime(t *testing.T) {
	redistest.Each(t, func(t *testing.T, url string) {
		b := newBedAt(t, url, store.LogConfig{})
		const brokers, additions = 4, 25
		var all sync.WaitGroup
		for i := range brokers {
			l := b.openShared(b.newStore(url, Options{}))
			all.Go(func() {
				for done := 0; done < additions; {
					state, _, end := b.fold(l, store.Seen{}, 0)
					n := 0
					_, _ = fmt.Sscan(state["sum"], &n)
					err := l.AppendAt(b.ctx, end, b.change("sum", fmt.Sprint(n+1), fmt.Sprint("by", i)))
					if err == nil {
						done++
					} else if !errors.Is(err, store.ErrMoved) && !errors.Is(err, store.ErrCompacted) {
						t.Error(err)
						return
					}
					if done%10 == 5 {
						if err := l.Compact(b.ctx, end.Next); err != nil && !errors.Is(err, store.ErrMoved) {
							t.Error(err)
						}
					}
				}
			})
		}
		all.Wait()
		l := b.openShared(b.store)
		state, _, end := b.fold(l, store.Seen{}, 0)
		if state["sum"] != fmt.Sprint(brokers*additions) || end.Next != 2*brokers*additions {
			t.Errorf("the sum is %s, the log ends at %d", state["sum"], end.Next)
		}
		must(t, l.Compact(b.ctx, end.Next))
		again, records, after := b.fold(l, store.Seen{}, 0)
		if fmt.Sprint(again) != fmt.Sprint(state) || records != brokers+1 || after.Next != end.Next {
			t.Errorf("after compaction: %v in %d records up to %v; before: %v up to %v", again, records, after, state, end)
		}
		must(t, l.AppendAt(b.ctx, after, b.change("sum", "0")))
	})
}

func TestSharedLogWakesReaders(t *testing.T) {
	b := newBed(t, store.LogConfig{})
	reader, writer := b.openShared(b.store), b.openShared(b.newStore(single(t), Options{}))
	first := b.change("a", "1")
	must(t, writer.AppendAt(b.ctx, store.Seen{}, first))
	got := make(chan string, 1)
	go func() {
		state, _, _ := b.fold(reader, seen(first), 20*time.Second)
		got <- state["a"]
	}()
	redistest.Eventually(t, "the reader to wait", func() bool { return !strings.Contains(b.do("INFO", "clients"), "blocked_clients:0") })
	second := b.change("a", "2")
	must(t, writer.AppendAt(b.ctx, seen(first), second))
	if value := <-got; value != "2" {
		t.Errorf("the reader saw %q", value)
	}
	// Nothing comes, and the wait is over in its time.
	if _, n, _ := b.fold(reader, seen(second), 50*time.Millisecond); n != 0 {
		t.Errorf("%d records", n)
	}
	ctx, cancel := context.WithCancel(b.ctx)
	cancel()
	if _, err := reader.Read(ctx, seen(second), time.Minute); !errors.Is(err, context.Canceled) {
		t.Errorf("a canceled read: %v", err)
	}
}

func TestSharedLogRefusesWhatDoesNotFit(t *testing.T) {
	b := newBed(t, inBatches)
	l := b.openShared(b.store)
	batch := b.change("a", "1")
	if err := l.AppendAt(b.ctx, store.Seen{Next: 5}, batch); !errors.Is(err, store.ErrLost) {
		t.Errorf("beyond the end: %v", err)
	}
	if err := l.AppendAt(b.ctx, store.Seen{}, batch[:20]); !errors.Is(err, store.ErrInvalidBatch) {
		t.Errorf("half a batch: %v", err)
	}
	must(t, l.AppendAt(b.ctx, store.Seen{}, batch))
	if err := l.AppendAt(b.ctx, store.Seen{}, batch); !errors.Is(err, store.ErrMoved) {
		t.Errorf("twice: %v", err)
	}
	if _, err := b.store.Open(b.ctx, b.at, 1, inBatches); !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("opened as a log with an owner: %v", err)
	}
	must(t, b.store.Delete(b.ctx, b.at))
	if err := l.AppendAt(b.ctx, seen(batch), batch); !errors.Is(err, store.ErrLost) {
		t.Errorf("after deletion: %v", err)
	}
	b.open(1)
	if _, err := b.store.OpenShared(b.ctx, b.at); !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("a log with an owner opened as shared: %v", err)
	}
}

func TestValuesThatRedisDoesNotTakeAreRefused(t *testing.T) {
	s := redistest.Single(t, "proto-max-bulk-len 1mb")
	for name, cfg := range allLayouts {
		t.Run(name, func(t *testing.T) {
			b := newBedAt(t, s.URL(), cfg)
			l := b.open(1)
			_, err := l.Append(b.ctx, b.valued(strings.Repeat("x", 2<<20)))
			if !errors.Is(err, store.ErrInvalidBatch) || !strings.Contains(err.Error(), "proto-max-bulk-len") {
				t.Errorf("2 MB: %v", err)
			}
			b.append(l, b.valued("small"))
		})
	}
}
