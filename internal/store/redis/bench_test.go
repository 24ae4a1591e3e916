package redis

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"muster/internal/record"
	"muster/internal/redistest"
	"muster/internal/store"
)

// The benchmarks do the same work twice in every round, once with plain
// commands and once through a log, and report what the log reaches of the
// plain speed (ratio), and of what a second of the server's time does
// (server-ratio). They are about this package, so that both sides use the
// same client, and no one waits longer than for the window of appends that a
// few pipelining producers keep.
const benchWindow = 16 // batches under way per partition

type benchCase struct {
	name       string
	layout     store.Layout
	partitions int
	records    int // per batch
	size       int // of a record's value
}

var benchCases = []benchCase{
	{"stream-1K-16", store.LayoutStream, 1, 16, 1024},
	{"stream-1K-16", store.LayoutStream, 12, 16, 1024},
	{"stream-1K-1", store.LayoutStream, 1, 1, 1024},
	{"stream-1K-1", store.LayoutStream, 12, 1, 1024},
	{"stream-100B-100", store.LayoutStream, 1, 100, 100},
	{"stream-100B-100", store.LayoutStream, 12, 100, 100},
	{"log-16K", store.LayoutLog, 1, 16, 1024},
	{"log-16K", store.LayoutLog, 12, 16, 1024},
	{"log-64K", store.LayoutLog, 1, 64, 1024},
	{"log-64K", store.LayoutLog, 12, 64, 1024},
}

func (c benchCase) batch() record.Batch {
	recs := make([]record.Record, c.records)
	for i := range recs {
		recs[i] = record.Record{OffsetDelta: int32(i), Timestamp: time.Now().UnixMilli(), Key: []byte("key-1234"), Value: bytes.Repeat([]byte{byte('a' + i%26)}, c.size)}
	}
	b, err := record.Build(record.PlainTemplate(), recs)
	if err != nil {
		panic(err)
	}
	return b
}

// comparison is a server with two clients, and what both sides append.
type comparison struct {
	benchCase
	raw, client rueidis.Client
	batch       record.Batch
	entries     []entry
}

func newComparison(b *testing.B, c benchCase) *comparison {
	url := redistest.Shared(b, redistest.KindSingle).URL()
	x := &comparison{benchCase: c, raw: connect(b, url), client: connect(b, url), batch: c.batch()}
	var enc encoder
	if err := x.batch.Each(func(r *record.Record) error { x.entries = append(x.entries, slices.Clone(enc.add(r))); return nil }); err != nil {
		b.Fatal(err)
	}
	return x
}

// each runs fn for every partition at once and returns how long that took.
func (x *comparison) each(fn func(partition int)) time.Duration {
	start := time.Now()
	var all sync.WaitGroup
	for p := range x.partitions {
		all.Go(func() { fn(p) })
	}
	all.Wait()
	return time.Since(start)
}

// plain appends with nothing but XADD, in pipelines as large as the groups
// that a log sends.
func (x *comparison) plain(b *testing.B, prefix string, batches int) time.Duration {
	return x.each(func(p int) {
		key := prefix + ":raw:" + strconv.Itoa(p)
		at := make(chan int, batches)
		for i := range batches {
			at <- i
		}
		close(at)
		var senders sync.WaitGroup
		for range benchWindow {
			senders.Go(func() {
				for range at {
					for _, r := range x.raw.DoMulti(context.Background(), x.plainCommands(key)...) {
						if err := r.Error(); err != nil {
							b.Error(err)
						}
					}
				}
			})
		}
		senders.Wait()
	})
}

func (x *comparison) plainCommands(key string) []rueidis.Completed {
	if x.layout == store.LayoutLog {
		return []rueidis.Completed{x.raw.B().Xadd().Key(key).Id("*").FieldValue().FieldValue(fieldBatch, rueidis.BinaryString(x.batch)).Build()}
	}
	cmds := make([]rueidis.Completed, len(x.entries))
	for i, e := range x.entries {
		cmds[i] = x.raw.B().Arbitrary("XADD").Keys(key).Args("*").Args(e...).Build()
	}
	return cmds
}

// through appends through logs.
func (x *comparison) through(b *testing.B, logs []store.Pipelined, batches int) time.Duration {
	return x.each(func(p int) {
		window := make(chan struct{}, benchWindow)
		batch := bytes.Clone(x.batch)
		for range batches {
			window <- struct{}{}
			logs[p].Begin(context.Background(), batch, func(_ store.Appended, err error) {
				if err != nil {
					b.Error(err)
				}
				<-window
			})
		}
		for range benchWindow {
			window <- struct{}{}
		}
	})
}

func (x *comparison) open(b *testing.B, s *Store) []store.Pipelined {
	logs := make([]store.Pipelined, x.partitions)
	for p := range logs {
		l, err := s.Open(b.Context(), store.TopicPartition{Topic: "t", Partition: int32(p)}, 1, store.LogConfig{Layout: x.layout})
		if err != nil {
			b.Fatal(err)
		}
		logs[p] = l.(store.Pipelined)
	}
	return logs
}

// clean removes all keys with a prefix.
func (x *comparison) clean(b *testing.B, s *Store, logs []store.Pipelined, prefix string) {
	for p := range logs {
		key := prefix + ":raw:" + strconv.Itoa(p)
		if err := x.raw.Do(context.Background(), x.raw.B().Del().Key(key).Build()).Error(); err != nil {
			b.Error(err)
		}
		if err := s.Delete(context.Background(), store.TopicPartition{Topic: "t", Partition: int32(p)}); err != nil {
			b.Error(err)
		}
	}
}

// benchBytes is how much a round appends on each side.
const benchBytes = 32 << 20

func BenchmarkAppend(b *testing.B) {
	for _, c := range benchCases {
		b.Run(fmt.Sprintf("%s/partitions=%d", c.name, c.partitions), func(b *testing.B) {
			x := newComparison(b, c)
			batches := max(benchBytes/len(x.batch)/c.partitions, 1)
			if c.records == 1 {
				batches /= 4
			}
			var plain, through time.Duration
			var plainCPU, throughCPU time.Duration
			for b.Loop() {
				prefix := redistest.Prefix(b)
				s := New(x.client, Options{Prefix: prefix})
				logs := x.open(b, s)
				before := serverCPU(b)
				plain += x.plain(b, prefix, batches)
				between := serverCPU(b)
				through += x.through(b, logs, batches)
				plainCPU += between - before
				throughCPU += serverCPU(b) - between
				x.clean(b, s, logs, prefix)
				_ = s.Close()
			}
			total := float64(b.N * batches * c.partitions)
			b.ReportMetric(plain.Seconds()/through.Seconds(), "ratio")
			b.ReportMetric(total*float64(c.records)/plain.Seconds(), "plain-rec/s")
			b.ReportMetric(total*float64(c.records)/through.Seconds(), "log-rec/s")
			b.ReportMetric(total*float64(len(x.batch))/through.Seconds()/1e6, "log-MB/s")
			b.ReportMetric(plainCPU.Seconds()/throughCPU.Seconds(), "server-ratio")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// serverCPU is how long the server has computed so far. On a machine that is
// busy with other things, what it takes to append says more than how long.
func serverCPU(b *testing.B) time.Duration {
	node := redistest.Shared(b, redistest.KindSingle).Nodes[0]
	var sum float64
	for _, field := range []string{"used_cpu_user_main_thread", "used_cpu_sys_main_thread"} {
		seconds, err := strconv.ParseFloat(node.Info("cpu", field), 64)
		if err != nil {
			b.Fatal(err)
		}
		sum += seconds
	}
	return time.Duration(sum * float64(time.Second))
}

// BenchmarkRead compares with XRANGE of the same entries, in steps of a
// megabyte.
func BenchmarkRead(b *testing.B) {
	for _, c := range benchCases {
		b.Run(fmt.Sprintf("%s/partitions=%d", c.name, c.partitions), func(b *testing.B) {
			x := newComparison(b, c)
			prefix := redistest.Prefix(b)
			s := New(x.client, Options{Prefix: prefix})
			logs := x.open(b, s)
			x.through(b, logs, max(benchBytes/len(x.batch)/c.partitions, 1))
			perRead := int64(1<<20) / int64(len(x.batch))
			if c.layout == store.LayoutStream {
				perRead *= int64(c.records)
			}
			var plain, through time.Duration
			for b.Loop() {
				plain += x.each(func(p int) {
					x.plainRead(b, logKeys(prefix, store.TopicPartition{Topic: "t", Partition: int32(p)}).stream, perRead)
				})
				through += x.each(func(p int) { readAll(b, logs[p]) })
			}
			b.ReportMetric(plain.Seconds()/through.Seconds(), "ratio")
			b.ReportMetric(float64(b.N)*benchBytes/through.Seconds()/1e6, "log-MB/s")
			b.ReportMetric(0, "ns/op")
			x.clean(b, s, logs, prefix)
			_ = s.Close()
		})
	}
}

func (x *comparison) plainRead(b *testing.B, key string, count int64) {
	from := "-"
	for {
		entries, err := x.raw.Do(context.Background(), x.raw.B().Xrange().Key(key).Start(from).End("+").Count(count).Build()).ToArray()
		if err != nil {
			b.Error(err)
		}
		if int64(len(entries)) < count {
			return
		}
		last, _, err := entryParts(&entries[len(entries)-1])
		if err != nil {
			b.Error(err)
		}
		from = "(" + last.String()
	}
}

func readAll(b *testing.B, l store.Log) {
	at, end := l.Bounds()
	for at < end {
		r, err := l.Read(context.Background(), store.ReadRequest{Offset: at, NextOffset: math.MaxInt64, MaxBytes: 1 << 20, MinOne: true})
		if err != nil {
			b.Error(err)
			return
		}
		for rest := r.Bytes; len(rest) > 0; {
			batch, more, err := record.Next(rest)
			if err != nil {
				b.Error(err)
				return
			}
			rest, at = more, batch.LastOffset()+1
		}
	}
}
