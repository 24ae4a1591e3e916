package redis

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"muster/internal/record"
	"muster/internal/redistest"
	"muster/internal/store"
)

// bed is a store with a log, and a Redis client of someone else.
type bed struct {
	*testing.T
	ctx    context.Context
	client rueidis.Client // of someone else
	prefix string
	store  *Store
	at     store.TopicPartition
	cfg    store.LogConfig
	log    store.Pipelined
	logged *lines
}

// patience is for servers that are to answer. On a busy machine that may take long.
const patience = time.Minute

func newBed(t *testing.T, cfg store.LogConfig) *bed { return newBedAt(t, single(t), cfg) }

func newBedAt(t *testing.T, url string, cfg store.LogConfig) *bed {
	b := &bed{
		T: t, ctx: t.Context(), client: connect(t, url), prefix: redistest.Prefix(t), cfg: cfg,
		at: store.TopicPartition{Topic: "orders", Partition: 3}, logged: &lines{},
	}
	b.store = b.newStore(url, Options{})
	return b
}

// newStore makes another store on the same keys.
func (b *bed) newStore(url string, opts Options) *Store {
	opts.Prefix, opts.Logger = b.prefix, slog.New(slog.NewTextHandler(b.logged, nil))
	opts.Timeout = cmp.Or(opts.Timeout, patience)
	opts.ReplicaTimeout = cmp.Or(opts.ReplicaTimeout, min(opts.Timeout, 5*time.Second))
	s := New(connect(b.T, url), opts)
	b.Cleanup(func() { _ = s.Close() })
	return s
}

// open opens the log.
func (b *bed) open(epoch int32) store.Pipelined {
	b.Helper()
	b.log = b.openIn(b.store, epoch)
	return b.log
}

func (b *bed) openIn(s *Store, epoch int32) store.Pipelined {
	b.Helper()
	l, err := s.Open(b.ctx, b.at, epoch, b.cfg)
	must(b.T, err)
	return l.(store.Pipelined)
}

func (b *bed) keys() keys { return logKeys(b.prefix, b.at) }

// do runs a command as someone else and returns its reply as text.
func (b *bed) do(words ...string) string {
	b.Helper()
	text, err := b.try(words...)
	must(b.T, err)
	return text
}

func (b *bed) try(words ...string) (string, error) {
	m, err := b.client.Do(context.Background(), b.client.B().Arbitrary(words...).Build()).ToAny()
	return fmt.Sprint(m), err
}

// batchOf makes a batch.
func (b *bed) batchOf(recs ...record.Record) record.Batch {
	b.Helper()
	for i := range recs {
		recs[i].OffsetDelta = int32(i)
	}
	batch, err := record.Build(record.PlainTemplate(), recs)
	must(b.T, err)
	return batch
}

// valued makes a batch with a record for each value.
func (b *bed) valued(values ...string) record.Batch {
	b.Helper()
	recs := make([]record.Record, len(values))
	for i, v := range values {
		recs[i] = record.Record{Timestamp: time.Now().UnixMilli(), Key: []byte("k"), Value: []byte(v)}
	}
	return b.batchOf(recs...)
}

func (b *bed) append(l store.Log, batch record.Batch) store.Appended {
	b.Helper()
	at, err := l.Append(b.ctx, batch)
	must(b.T, err)
	return at
}

// content reads a log from its start.
func (b *bed) content(l store.Log) []record.Record {
	b.Helper()
	var out []record.Record
	at, end := l.Bounds()
	last := int64(-1)
	for at < end {
		r, err := l.Read(b.ctx, store.ReadRequest{Offset: at, NextOffset: math.MaxInt64, MaxBytes: 1 << 20, MinOne: true})
		must(b.T, err)
		if r.Len == 0 {
			break
		}
		for rest := r.Bytes; len(rest) > 0; {
			batch, more, err := record.Next(rest)
			must(b.T, err)
			must(b.T, batch.Check())
			must(b.T, batch.Each(func(r *record.Record) error {
				if r.Offset <= last {
					b.Fatalf("offset %d after %d", r.Offset, last)
				}
				last = r.Offset
				out = append(out, *r)
				return nil
			}))
			rest, at = more, batch.LastOffset()+1
		}
	}
	return out
}

func (b *bed) values(l store.Log) []string {
	b.Helper()
	var out []string
	for _, r := range b.content(l) {
		out = append(out, string(r.Value))
	}
	return out
}

// lines is what was logged.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) count(what string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), what)
}

var (
	inStreams = store.LogConfig{Layout: store.LayoutStream}
	inBatches = store.LogConfig{Layout: store.LayoutLog}
)

// flushed waits until what was appended is as durable as the log makes it.
func flushed(l store.Log) error {
	done := make(chan error, 1)
	l.Flush(func(err error) { done <- err })
	return <-done
}
