package redis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"muster/internal/record"
	"muster/internal/redistest"
	"muster/internal/store"
	"muster/internal/store/redis/conn"
)

// writer appends numbered records to a log, and opens it again whenever it
// must, as a partition does: under the same epoch, and under a higher one if it
// finds less than was acknowledged.
type writer struct {
	store *Store
	tp    store.TopicPartition
	cfg   store.LogConfig
	epoch int32
	log   store.Log
	shown int64 // the end of what was acknowledged
	next  int
	acked []int
	count atomic.Int64 // of acked, for others to see
}

func newWriter(t *testing.T, url string, cfg store.LogConfig) *writer {
	t.Helper()
	var client rueidis.Client
	must(t, redistest.Poll(patience, func() (err error) {
		client, err = conn.Connect(context.Background(), url, conn.Options{DialTimeout: time.Second, CommandTimeout: 2 * time.Second})
		return err
	}))
	t.Cleanup(client.Close)
	w := &writer{cfg: cfg, epoch: 1, tp: store.TopicPartition{Topic: "orders"}}
	w.store = New(client, Options{Prefix: redistest.Prefix(t), Timeout: time.Second})
	t.Cleanup(func() { _ = w.store.Close() })
	must(t, w.open())
	return w
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// key is the key of the log's stream.
func (w *writer) key() string { return logKeys(w.store.prefix, w.tp).stream }

// open takes the log over, when Redis lets it.
func (w *writer) open() error {
	return redistest.Poll(time.Minute, func() (err error) {
		w.log, err = w.store.Open(context.Background(), w.tp, w.epoch, w.cfg)
		if err != nil {
			return err
		}
		if _, end := w.log.Bounds(); end < w.shown {
			w.epoch++
			w.shown = end
			w.log, err = w.store.Open(context.Background(), w.tp, w.epoch, w.cfg)
		}
		return err
	})
}

// append appends the next record and flushes it.
func (w *writer) append() error { return w.burst(1) }

// burst appends records without waiting for one another, and flushes after
// each. It returns the first error; those without are acknowledged all the
// same.
func (w *writer) burst(records int) error {
	appended, flushed, ends := make([]error, records), make([]error, records), make([]int64, records)
	var wg sync.WaitGroup
	first := w.next
	w.next += records
	for i := range records {
		value := []byte(strconv.Itoa(first + i))
		batch, err := record.Build(record.PlainTemplate(), []record.Record{{Timestamp: time.Now().UnixMilli(), Value: value}})
		if err != nil {
			return err
		}
		wg.Add(2)
		w.log.(store.Pipelined).Begin(context.Background(), batch, func(at store.Appended, err error) {
			appended[i], ends[i] = err, at.LastOffset+1
			wg.Done()
		})
		w.log.Flush(func(err error) {
			flushed[i] = err
			wg.Done()
		})
	}
	wg.Wait()
	var failed error
	for i := range records {
		switch err := cmp.Or(appended[i], flushed[i]); {
		case err == nil:
			w.acked = append(w.acked, first+i)
			w.shown = max(w.shown, ends[i])
			w.count.Add(1)
		case failed == nil:
			failed = fmt.Errorf("record %d: %w", first+i, err)
		}
	}
	return failed
}

// appendUntil appends, and opens the log again after errors, until so many more
// were acknowledged. It gives up if none is for a long time.
func (w *writer) appendUntil(more int) error {
	last := time.Now()
	for want := len(w.acked) + more; len(w.acked) < want; {
		err := w.burst(min(8, want-len(w.acked)))
		switch {
		case err == nil:
			last = time.Now()
		case time.Since(last) > time.Minute:
			return fmt.Errorf("for a minute: %w", err)
		case errors.Is(err, store.ErrNotReplicated):
		case errors.Is(err, store.ErrStorage), errors.Is(err, store.ErrFailed), errors.Is(err, store.ErrClosed):
			if err := w.open(); err != nil {
				return err
			}
		default:
			return err
		}
	}
	return nil
}

// during appends while a test breaks and mends things, and some more after it.
func (w *writer) during(t *testing.T, breaks func()) {
	t.Helper()
	broken, done := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			if err := w.appendUntil(10); err != nil {
				done <- err
				return
			}
			select {
			case <-broken:
				done <- w.appendUntil(100)
				return
			default:
			}
		}
	}()
	redistest.Eventually(t, "appends", func() bool { return w.count.Load() >= 50 })
	breaks()
	close(broken)
	must(t, <-done)
}

// wantAll demands that every acknowledged record is there, in order.
func (w *writer) wantAll(t *testing.T) {
	t.Helper()
	found, at := w.read(t), 0
	for _, value := range found {
		if at < len(w.acked) && value == strconv.Itoa(w.acked[at]) {
			at++
		}
	}
	if at < len(w.acked) {
		t.Errorf("record %d was acknowledged and is not there: %d of %d were found, the log holds %d", w.acked[at], at, len(w.acked), len(found))
	}
}

// read returns the values of all records.
func (w *writer) read(t *testing.T) []string {
	t.Helper()
	var values []string
	offset, end := w.log.Bounds()
	for offset < end {
		var recs store.Records
		must(t, redistest.Poll(patience, func() (err error) {
			recs, err = w.log.Read(context.Background(), store.ReadRequest{Offset: offset, NextOffset: math.MaxInt64, MaxBytes: 1 << 20, MinOne: true})
			if !errors.Is(err, store.ErrUnavailable) { // The machine is busy.
				must(t, err)
			}
			return err
		}))
		text, err := recs.Load()
		must(t, err)
		if len(text) == 0 {
			break
		}
		for len(text) > 0 {
			var batch record.Batch
			batch, text, err = record.Next(text)
			must(t, err)
			must(t, batch.Each(func(r *record.Record) error {
				values = append(values, string(r.Value))
				return nil
			}))
			offset = batch.LastOffset() + 1
		}
		recs.Release()
	}
	return values
}

// deployments are those with replicas.
var deployments = map[redistest.Kind]func(testing.TB, ...string) *redistest.Server{
	redistest.KindCluster: redistest.Cluster, redistest.KindSentinel: redistest.Sentinel,
}

// TestFailoverKeepsWhatReplicasAcknowledged is the promise of acks=all with
// min.insync.replicas=2.
func TestFailoverKeepsWhatReplicasAcknowledged(t *testing.T) {
	for kind, start := range deployments {
		for _, layout := range []store.Layout{store.LayoutLog, store.LayoutStream} {
			t.Run(fmt.Sprintf("%s-%s", kind, layout), func(t *testing.T) {
				s := start(t)
				w := newWriter(t, s.URL(), store.LogConfig{Layout: layout, Replicas: 2})
				w.during(t, func() {
					old := s.Primary(t, w.key())
					old.Kill()
					if s.Primary(t, w.key()) == old {
						t.Error("there was no failover")
					}
					old.Start(t) // In a cluster the new primary has no other replica.
				})
				w.wantAll(t)
			})
		}
	}
}

// TestPrimaryThatWasAwayAcknowledgesNothing freezes a primary until another
// one has taken its place. When it wakes up it believes for a while that it is
// the primary still; what it takes then is lost when it learns better, so it
// must not be acknowledged.
func TestPrimaryThatWasAwayAcknowledgesNothing(t *testing.T) {
	for kind, start := range deployments {
		t.Run(string(kind), func(t *testing.T) {
			s := start(t)
			w := newWriter(t, s.URL(), store.LogConfig{Layout: store.LayoutLog, Replicas: 2})
			w.during(t, func() {
				old := s.Primary(t, w.key())
				old.Pause()
				if s.Primary(t, w.key()) == old {
					t.Error("there was no failover")
				}
				old.Resume()
				redistest.Eventually(t, "the old primary to follow", func() bool { return !old.IsPrimary() })
			})
			must(t, w.open())
			w.wantAll(t)
		})
	}
}

func TestFlushWaitsForReplicas(t *testing.T) {
	for kind, start := range deployments {
		t.Run(string(kind), func(t *testing.T) {
			s := start(t)
			w := newWriter(t, s.URL(), store.LogConfig{Layout: store.LayoutStream, Replicas: 2})
			must(t, w.appendUntil(5))
			for _, n := range s.Replicas(s.Primary(t, w.key())) {
				n.Kill()
			}
			err := w.append()
			for tries := 0; tries < 5 && errors.Is(err, store.ErrUnavailable); tries++ { // The machine is busy.
				must(t, w.open())
				err = w.append()
			}
			if !errors.Is(err, store.ErrNotReplicated) {
				t.Errorf("without replicas: %v", err)
			}
			w.log.SetConfig(store.LogConfig{Layout: store.LayoutStream, Replicas: 1})
			if err := w.append(); err != nil {
				t.Errorf("asking for no replicas: %v", err)
			}
			w.wantAll(t)
		})
	}
}

func TestLogComesBackWithRedis(t *testing.T) {
	for _, layout := range []store.Layout{store.LayoutLog, store.LayoutStream} {
		t.Run(string(layout), func(t *testing.T) {
			s := redistest.Single(t)
			w := newWriter(t, s.URL(), store.LogConfig{Layout: layout})
			must(t, w.appendUntil(20))
			s.Nodes[0].Kill()
			if err := w.append(); !errors.Is(err, store.ErrUnavailable) {
				t.Errorf("append without Redis: %v", err)
			}
			if err := w.append(); !errors.Is(err, store.ErrStorage) && !errors.Is(err, store.ErrFailed) {
				t.Errorf("append after a failed one: %v", err)
			}
			request := store.ReadRequest{NextOffset: math.MaxInt64, MaxBytes: 1 << 20, MinOne: true}
			request.Offset, _ = w.log.Bounds()
			if _, err := w.log.Read(context.Background(), request); !errors.Is(err, store.ErrUnavailable) {
				t.Errorf("read without Redis: %v", err)
			}
			if _, err := w.store.Open(context.Background(), w.tp, w.epoch+1, w.cfg); !errors.Is(err, store.ErrUnavailable) {
				t.Errorf("open without Redis: %v", err)
			}
			s.Nodes[0].Start(t)
			redistest.Eventually(t, "the old handle to read again", func() bool {
				_, err := w.log.Read(context.Background(), request)
				return err == nil
			})
			must(t, w.open())
			must(t, w.appendUntil(20))
			w.wantAll(t)
		})
	}
}

// TestLogMustBeOpenedAgainWhenRedisForgot puts the log's token back to an
// earlier one, which is what a failover to a replica that is behind does. The
// handle must fail and not say that it was closed: its owner is to open it
// again.
func TestLogMustBeOpenedAgainWhenRedisForgot(t *testing.T) {
	for _, forget := range []func(token [3]int64) [3]int64{
		func(token [3]int64) [3]int64 { return [3]int64{token[0], token[1], token[2] - 1} },
		func(token [3]int64) [3]int64 { return [3]int64{token[0], token[1] - 1, 7} },
		func(token [3]int64) [3]int64 { return [3]int64{token[0] - 1, token[1] - 1, 7} },
	} {
		url := redistest.Shared(t, redistest.KindSingle).URL()
		w := newWriter(t, url, store.LogConfig{Layout: store.LayoutLog})
		must(t, w.appendUntil(3))
		ctx, client, meta := context.Background(), connect(t, url), logKeys(w.store.prefix, w.tp).meta
		text, err := client.Do(ctx, client.B().Hget().Key(meta).Field("n").Build()).ToString()
		must(t, err)
		token, err := parseToken(text)
		must(t, err)
		token = forget(token)
		text = fmt.Sprintf("%d.%d.%d", token[0], token[1], token[2])
		must(t, client.Do(ctx, client.B().Hset().Key(meta).FieldValue().FieldValue("n", text).Build()).Error())
		if err := w.append(); !errors.Is(err, store.ErrFailed) && !errors.Is(err, store.ErrStorage) {
			t.Errorf("with token %s: %v", text, err)
		}
		must(t, w.appendUntil(1))
	}
}
