package partition

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/record"
	"muster/internal/redistest"
	"muster/internal/store"
	"muster/internal/store/mem"
	"muster/internal/store/redis"
	"muster/internal/store/redis/conn"
	"muster/internal/store/vfs"
)

// redisStore connects to a server. Only where it is to stand still is there little
// patience with it: on a busy machine it may take seconds to answer.
func redisStore(t *testing.T, s *redistest.Server, prefix string, patience time.Duration) store.Store {
	t.Helper()
	runs := &conn.Runs{}
	client, err := conn.Connect(t.Context(), s.URL(), conn.Options{DialTimeout: patience, CommandTimeout: patience, Runs: runs})
	must(t, err)
	t.Cleanup(client.Close)
	st := redis.New(client, redis.Options{Prefix: prefix, Timeout: patience, Runs: runs})
	t.Cleanup(func() { _ = st.Close() })
	return st
}

// values reads all that a partition shows.
func (r *rig) values() (out []string) {
	r.t.Helper()
	offset := r.part().LogStartOffset()
	for offset < r.part().HighWatermark() {
		f := r.part().Read(r.t.Context(), Fetch{Offset: offset, LeaderEpoch: NoEpoch, LastFetchedEpoch: NoEpoch, MaxBytes: 1 << 20, MinOne: true})
		if f.Err != nil {
			r.t.Fatal(f.Err)
		}
		b, err := f.Records.Load()
		if err != nil || len(b) == 0 {
			r.t.Fatalf("read at %d: %d bytes, %v", offset, len(b), err)
		}
		for len(b) > 0 {
			var batch record.Batch
			if batch, b, err = record.Next(b); err != nil {
				r.t.Fatal(err)
			}
			_ = batch.Each(func(rec *record.Record) error {
				out = append(out, string(rec.Value))
				return nil
			})
			offset = batch.LastOffset() + 1
		}
		f.Records.Release()
	}
	return out
}

// TestReopenFindsAnAppendThatRedisTookWithoutAnswering freezes Redis while a
// record is on its way. The append fails, and yet the record is stored when
// Redis goes on: who reads on after Reopen must see it.
func TestReopenFindsAnAppendThatRedisTookWithoutAnswering(t *testing.T) {
	server := redistest.Single(t)
	r := newRig(t, redisStore(t, server, "reopen", 4*time.Second), map[string]string{"muster.redis.layout": "log"})
	r.wantAppend(r.batch(plain, 1, "known"), 0)
	server.Nodes[0].Pause()
	if a := r.append(r.batch(plain, 1, "unknown"), AcksAll); a.Err == nil {
		t.Fatal("acknowledged by a server that stands still")
	}
	if err := r.part().Reopen(t.Context()); err == nil {
		t.Error("opened again without Redis")
	}
	server.Nodes[0].Resume()
	if err := redistest.Poll(time.Minute, func() error { return r.part().Reopen(t.Context()) }); err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(r.values()), "[known unknown]"; got != want {
		t.Errorf("the log shows %v, want %v", got, want)
	}
	r.wantAppend(r.batch(plain, 1, "next"), 2)
}

// TestReopenLeavesNoAppendThatComesLater opens the log again amid appends. What
// is refused must not be found above the high watermark that Reopen set, nor be
// there twice.
func TestReopenLeavesNoAppendThatComesLater(t *testing.T) {
	for name, open := range map[string]func(t *testing.T) store.Store{
		"mem":   func(*testing.T) store.Store { return mem.New() },
		"disk":  func(t *testing.T) store.Store { return diskStore(t, vfs.NewMem()) },
		"redis": func(t *testing.T) store.Store { return redisStore(t, redistest.Single(t), "reopen", time.Minute) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, open(t), map[string]string{"muster.redis.layout": "log"})
			const producers, each, reopens = 4, 60, 10
			var appended atomic.Int64
			var acked sync.Map // value → offset
			var all sync.WaitGroup
			for producer := range producers {
				all.Go(func() {
					var pending sync.WaitGroup
					for i := range each {
						value := fmt.Sprintf("%d-%d", producer, i)
						pending.Add(1)
						r.part().Append(t.Context(), r.batch(plain, 1, value), Produce{Acks: AcksAll}, func(a Appended) {
							if a.Err == nil {
								acked.Store(value, a.BaseOffset)
							}
							appended.Add(1)
							pending.Done()
						})
					}
					pending.Wait()
				})
			}
			var shown []string
			for range reopens {
				before := appended.Load()
				redistest.Eventually(t, "appends", func() bool { return appended.Load() > before || appended.Load() == producers*each })
				if err := r.part().Reopen(t.Context()); err != nil {
					t.Fatal(err)
				}
				now := r.values()
				if len(now) < len(shown) || fmt.Sprint(now[:len(shown)]) != fmt.Sprint(shown) {
					t.Fatalf("what was shown changed from %v to %v", shown, now)
				}
				shown = now
			}
			all.Wait()
			if err := r.part().Reopen(t.Context()); err != nil {
				t.Fatal(err)
			}
			final := map[string]int64{}
			for i, value := range r.values() {
				if at, twice := final[value]; twice {
					t.Errorf("%s is at %d and at %d", value, at, i)
				}
				final[value] = int64(i)
			}
			acked.Range(func(value, offset any) bool {
				if at, ok := final[value.(string)]; !ok || at != offset {
					t.Errorf("%v was acknowledged at %v, and is at %v (%v)", value, offset, at, ok)
				}
				return true
			})
		})
	}
}

// TestReopenEndsTheHandleBefore begins an append under the old handle after the
// log was opened again: the store itself must refuse it.
func TestReopenEndsTheHandleBefore(t *testing.T) {
	for name, open := range map[string]func(t *testing.T) store.Store{
		"mem":   func(*testing.T) store.Store { return mem.New() },
		"disk":  func(t *testing.T) store.Store { return diskStore(t, vfs.NewMem()) },
		"redis": func(t *testing.T) store.Store { return redisStore(t, redistest.Single(t), "reopen", time.Minute) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, open(t), map[string]string{"muster.redis.layout": "log"})
			old := r.part().log.Load()
			if err := r.part().Reopen(t.Context()); err != nil || r.part().log.Load() != old {
				t.Errorf("a log that nobody used was opened again: %v", err)
			}
			r.wantAppend(r.batch(producerAt{7, 0, 0}, 1, "a"), 0)
			must(t, r.part().Reopen(t.Context()))
			if _, err := old.Append(t.Context(), r.batch(plain, 1, "late")); !errors.Is(err, store.ErrClosed) {
				t.Errorf("an append of the old handle: %v", err)
			}
			r.wantAppend(r.batch(producerAt{7, 0, 0}, 1, "a"), 0) // Its producer is still known.
			r.wantAppend(r.batch(producerAt{7, 0, 1}, 1, "b"), 1)
			if got := fmt.Sprint(r.values()); got != "[a b]" {
				t.Errorf("the log shows %v", got)
			}
			p := r.part()
			p.show(old, 100, true)
			if hw := p.HighWatermark(); hw != 2 {
				t.Errorf("the old handle moved the high watermark to %d", hw)
			}
			if p.pipelined {
				// An append that the store took and lost again, before it was opened.
				p.slots <- struct{}{}
				var told Appended
				p.ended(old, &pendingAppend{producer: -1, request: request{done: func(a Appended) { told = a }}}, store.Appended{BaseOffset: 50, LastOffset: 50}, nil)
				if told.Err == nil {
					t.Error("an append is acknowledged that is not in the log")
				}
			}
			must(t, r.Close(t.Context()))
			if err := p.Reopen(t.Context()); !errors.Is(err, kerr.NotLeaderForPartition) {
				t.Errorf("after the partition was closed: %v", err)
			}
		})
	}
}

// TestReopenShowsOnlyWhatIsDurable has appends of whose outcome no one was told:
// Reopen makes them durable before it shows them.
func TestReopenShowsOnlyWhatIsDurable(t *testing.T) {
	fs := vfs.NewMem()
	r := newRig(t, diskStore(t, fs), nil)
	write := func() {
		r.part().mu.Lock()
		defer r.part().mu.Unlock()
		if _, err := r.part().log.Load().Append(t.Context(), r.batch(plain, 1, "written")); err != nil {
			t.Fatal(err)
		}
		r.part().used = true
	}
	write()
	if err := r.part().Reopen(t.Context()); err != nil || r.part().HighWatermark() != 1 {
		t.Errorf("high watermark %d, %v", r.part().HighWatermark(), err)
	}
	fs.SetHook(func(op vfs.Op) error {
		if op.Kind == vfs.OpDatasync {
			return errors.New("medium error")
		}
		return nil
	})
	write()
	if err := r.part().Reopen(t.Context()); !errors.Is(err, kerr.KafkaStorageError) {
		t.Errorf("with a disk that cannot sync: %v", err)
	}
	if hw := r.part().HighWatermark(); hw != 1 {
		t.Errorf("high watermark %d", hw)
	}
	fs.SetHook(nil)
	must(t, r.part().Reopen(t.Context()))
	if hw, end := r.part().HighWatermark(), r.part().LogEndOffset(); hw != end || end != 1 {
		t.Errorf("high watermark %d, log end %d: what was not synced cannot be trusted", hw, end)
	}
}
