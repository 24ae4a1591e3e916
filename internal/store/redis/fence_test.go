package redis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"muster/internal/record"
	"muster/internal/redistest"
	"muster/internal/store"
)

var allLayouts = map[string]store.LogConfig{"Log": inBatches, "Stream": inStreams, "Indexed": inIndex}

// TestAZombieIsRefusedWhileAnotherAppends lets an old owner begin many appends
// at once while a newer one takes over, again and again. What was acknowledged
// is there, once, and after a takeover nothing of the old owner follows.
func TestAZombieIsRefusedWhileAnotherAppends(t *testing.T) {
	for name, cfg := range allLayouts {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, cfg)
			const rounds, appends = 8, 200
			var mu sync.Mutex
			acked := map[string]bool{}
			var all sync.WaitGroup
			for epoch := range int32(rounds) {
				l := b.openIn(b.newStore(single(t), Options{}), epoch)
				half := make(chan struct{})
				all.Add(appends)
				all.Go(func() {
					for i := range appends {
						value := fmt.Sprintf("%d.%03d", epoch, i)
						l.Begin(b.ctx, b.valued(value), func(_ store.Appended, err error) {
							defer all.Done()
							mu.Lock()
							defer mu.Unlock()
							if acked[value] = err == nil; err != nil && !errors.Is(err, store.ErrFenced) {
								t.Errorf("%s: %v", value, err)
							}
						})
						if i == appends/2 {
							close(half)
						}
					}
				})
				<-half
			}
			all.Wait()
			last := ""
			for _, value := range b.values(b.open(rounds)) {
				if value <= last {
					t.Fatalf("%s after %s", value, last)
				}
				if last = value; !acked[value] {
					t.Errorf("%s is there, but was not acknowledged", value)
				}
				delete(acked, value)
			}
			for value, ok := range acked {
				if ok {
					t.Errorf("%s was acknowledged and is not there", value)
				}
			}
		})
	}
}

// TestWhatFollowsAFailedAppendFails pipelines appends of which the first meets
// a foreign token.
func TestWhatFollowsAFailedAppendFails(t *testing.T) {
	for name, cfg := range allLayouts {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, cfg)
			l := b.open(1)
			b.append(l, b.valued("a"))
			token := b.do("HGET", b.keys().meta, "n")
			b.do("HSET", b.keys().meta, "n", "7.1.0")
			errs := make(chan error, 100)
			for range 100 {
				l.Begin(b.ctx, b.valued(strings.Repeat("x", 3000)), func(_ store.Appended, err error) { errs <- err })
			}
			for range 100 {
				if err := <-errs; !errors.Is(err, store.ErrFenced) {
					t.Fatal(err)
				}
			}
			b.do("HSET", b.keys().meta, "n", token)
			if _, err := l.Append(b.ctx, b.valued("b")); !errors.Is(err, store.ErrFenced) {
				t.Errorf("after a failure: %v", err)
			}
			if got := b.values(b.open(7)); !slices.Equal(got, []string{"a"}) {
				t.Errorf("values %q", got)
			}
		})
	}
}

func TestADeletedLogIsClosedForEverybody(t *testing.T) {
	for name, cfg := range allLayouts {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, cfg)
			l := b.open(1)
			b.append(l, b.valued("a"))
			start, end := l.Bounds()
			must(t, b.newStore(single(t), Options{}).Delete(b.ctx, b.at))
			if _, err := l.Append(b.ctx, b.valued("b")); !errors.Is(err, store.ErrClosed) {
				t.Errorf("append: %v", err)
			}
			if _, err := l.Read(b.ctx, store.ReadRequest{Offset: start, NextOffset: end, MaxBytes: 1000}); !errors.Is(err, store.ErrClosed) {
				t.Errorf("read: %v", err)
			}
			if err := l.Trim(b.ctx, end); !errors.Is(err, store.ErrClosed) {
				t.Errorf("trim: %v", err)
			}
			if got := b.do("KEYS", "*"+b.prefix+"*"); got != "[]" {
				t.Errorf("keys %s remain", got)
			}
		})
	}
}

// TestOutcomeUnknown freezes Redis in the middle of an append. The append may
// be done when it wakes up, or not; when the log is open again, its records and
// its producer state agree about that.
func TestOutcomeUnknown(t *testing.T) {
	for name, cfg := range allLayouts {
		t.Run(name, func(t *testing.T) {
			s := redistest.Single(t)
			b := newBedAt(t, s.URL(), cfg)
			b.store = b.newStore(s.URL(), Options{Timeout: time.Second})
			produce := func(l store.Log, seq int32) error {
				tmpl := record.PlainTemplate()
				tmpl.ProducerID, tmpl.ProducerEpoch, tmpl.BaseSequence = 77, 1, seq
				batch, err := record.Build(tmpl, []record.Record{{Timestamp: time.Now().UnixMilli(), Value: fmt.Append(nil, seq)}})
				must(t, err)
				_, err = l.Append(b.ctx, batch)
				return err
			}
			l := b.open(1)
			seq := int32(0)
			reopen := func() {
				redistest.Eventually(t, "Redis", func() bool {
					again, err := b.store.Open(context.Background(), b.at, 1, cfg)
					if err == nil {
						l = again.(store.Pipelined)
					}
					return err == nil
				})
				seq = b.wantSequence(l)
			}
			for round := range 6 {
				err := produce(l, seq)
				for tries := 0; tries < 5 && errors.Is(err, store.ErrUnavailable); tries++ { // The machine is busy.
					reopen()
					err = produce(l, seq)
				}
				must(t, err)
				seq++
				s.Nodes[0].Pause()
				err = produce(l, seq)
				if round%2 == 0 {
					s.Nodes[0].Resume()
				}
				if !errors.Is(err, store.ErrUnavailable) {
					t.Fatalf("append to a frozen Redis: %v", err)
				}
				if round%2 == 1 {
					if _, err := b.store.Open(context.Background(), b.at, 1, cfg); !errors.Is(err, store.ErrUnavailable) {
						t.Fatalf("open of a frozen Redis: %v", err)
					}
					s.Nodes[0].Resume()
				}
				if err := produce(l, seq); !errors.Is(err, store.ErrFailed) {
					t.Fatalf("append after a failed one: %v", err)
				}
				reopen()
			}
		})
	}
}

// wantSequence demands that the log holds the values 0, 1, 2 … and that the
// producer state says so, and returns what comes next.
func (b *bed) wantSequence(l store.Log) int32 {
	b.Helper()
	got := b.values(l)
	for i, value := range got {
		if value != fmt.Sprint(i) {
			b.Fatalf("values %q", got)
		}
	}
	producers, _, err := l.Producers(b.ctx)
	must(b.T, err)
	if len(producers) != 1 {
		b.Fatalf("producers %+v", producers)
	}
	batches := producers[0].Batches
	last := batches[len(batches)-1]
	_, end := l.Bounds()
	if int(last.LastSequence) != len(got)-1 || last.LastOffset != end-1 {
		b.Fatalf("%d records up to %d, but the producer's last batch is %+v", len(got), end, last)
	}
	return int32(len(got))
}

// TestWhatIsInTheWayIsAnErrorAndNoPanic has someone break the keys of a log in
// all kinds of ways.
func TestWhatIsInTheWayIsAnErrorAndNoPanic(t *testing.T) {
	for name, cfg := range allLayouts {
		for harm, words := range map[string][]string{
			"StreamIsAString":    {"SET", "STREAM", "x"},
			"StreamIsGone":       {"DEL", "STREAM"},
			"MetaIsAString":      {"SET", "META", "x"},
			"ProducersAreAList":  {"LPUSH", "PRODUCERS", "x"},
			"TokenIsNoToken":     {"HSET", "META", "n", "x"},
			"EpochsAreNoEpochs":  {"HSET", "META", "epochs", "{"},
			"StartIsNoOffset":    {"HSET", "META", "start", "x"},
			"EndIsNoOffset":      {"HSET", "META", "end", "-5"},
			"LayoutIsUnknown":    {"HSET", "META", "layout", "x"},
			"ProducerIsNonsense": {"HSET", "PRODUCERS", "77", "x"},
			"LastIDIsAbsurd":     {"XADD", "STREAM", "18446744073709551615-18446744073709551615", "a", "b"},
			"EntryIsNoBatch":     {"XADD", "STREAM", "18446744073709551614-0", "b", "b"},
		} {
			t.Run(name+harm, func(t *testing.T) {
				b := newBed(t, cfg)
				l := b.open(1)
				b.append(l, b.valued("a"))
				k := b.keys()
				keys := map[string]string{"STREAM": k.stream, "META": k.meta, "PRODUCERS": k.producers}
				for i, w := range words {
					if key, ok := keys[w]; ok {
						words[i] = key
					}
				}
				if words[0] == "LPUSH" {
					b.do("DEL", k.producers)
				}
				b.do(slices.Clone(words)...)
				b.useAll(l)
				again, err := b.store.Open(b.ctx, b.at, 2, cfg)
				if err == nil {
					b.useAll(again)
				}
				_, err = b.store.List(b.ctx)
				must(t, err)
				must(t, b.store.Delete(b.ctx, b.at))
				b.append(b.open(0), b.valued("anew"))
			})
		}
	}
}

// useAll calls everything, and demands that errors are those of the contract.
func (b *bed) useAll(l store.Log) {
	b.Helper()
	start, end := l.Bounds()
	tmpl := record.PlainTemplate()
	tmpl.ProducerID, tmpl.ProducerEpoch, tmpl.BaseSequence = 5, 1, 0
	batch, err := record.Build(tmpl, []record.Record{{Timestamp: 1, Key: []byte("k"), Value: []byte("v")}})
	must(b.T, err)
	_, err = l.Append(b.ctx, batch)
	errs := []error{err}
	_, err = l.Read(b.ctx, store.ReadRequest{Offset: start, NextOffset: end, MaxBytes: 1000, MinOne: true})
	errs = append(errs, err)
	_, _, err = l.OffsetForTimestamp(b.ctx, 1)
	errs = append(errs, err)
	_, _, err = l.MaxTimestamp(b.ctx)
	errs = append(errs, err, l.Retain(b.ctx, store.Retention{Now: time.Now(), MaxAge: time.Hour, MaxBytes: 10, NextOffset: end}),
		l.Compact(b.ctx, store.Compaction{Now: time.Now(), NextOffset: end}), l.Trim(b.ctx, end), l.SaveProducers(b.ctx, nil, end), flushed(l))
	if r, ok := l.(store.Refresher); ok {
		_, err = r.Refresh(b.ctx)
		errs = append(errs, err)
	}
	for i, err := range errs {
		known := err == nil
		for _, want := range []error{store.ErrStorage, store.ErrCorrupt, store.ErrFailed, store.ErrClosed, store.ErrFenced, store.ErrOffsetOutOfRange} {
			known = known || errors.Is(err, want)
		}
		if !known {
			b.Errorf("call %d: %v", i, err)
		}
	}
}

func TestAForeignEntryInALogOfBatchesIsNamed(t *testing.T) {
	b := newBed(t, inBatches)
	l := b.open(1)
	b.append(l, b.valued("a"))
	id := b.do("XADD", b.keys().stream, "*", "value", "stray")
	_, err := l.Append(b.ctx, b.valued("b"))
	if !errors.Is(err, store.ErrStorage) || !strings.Contains(err.Error(), id) || !strings.Contains(err.Error(), b.keys().stream) {
		t.Errorf("append: %v", err)
	}
	l = b.open(2)
	if got := b.values(l); !slices.Equal(got, []string{"a"}) {
		t.Errorf("values %q", got)
	}
}
