package interop

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"muster/internal/assert"
)

var franz = client{
	name: "franz-go", byKey: true, idempotent: true, // by default
	produce: franzProduce,
	consume: func(ctx context.Context, addr, topic string, c *collector) error {
		return franzRead(ctx, addr, topic, c, func(*kgo.Record) error { return nil })
	},
}

func franzCodec(name string) kgo.CompressionCodec {
	return map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
		"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	}[name]
}

func franzProduce(ctx context.Context, addr, topic, codec string, recs []rec) error {
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.ProducerBatchCompression(franzCodec(codec)))
	if err != nil {
		return err
	}
	defer cl.Close()
	failed := make(chan error, 1)
	for i := range recs {
		r := &kgo.Record{
			Topic: topic, Key: []byte(recs[i].key), Value: []byte(recs[i].value),
			Timestamp: time.UnixMilli(recs[i].timestamp),
		}
		for _, h := range recs[i].headerList() {
			r.Headers = append(r.Headers, kgo.RecordHeader{Key: h.name, Value: []byte(h.value)})
		}
		cl.Produce(ctx, r, func(_ *kgo.Record, err error) {
			if err != nil {
				select {
				case failed <- err:
				default:
				}
			}
		})
	}
	if err := cl.Flush(ctx); err != nil {
		return err
	}
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}

// franzRead reads until the collector has enough, and shows each record to
// inspect.
func franzRead(ctx context.Context, addr, topic string, c *collector, inspect func(*kgo.Record) error) error {
	from := map[int32]kgo.Offset{}
	for p := range c.parts {
		from[int32(p)] = kgo.NewOffset().AtStart()
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: from}))
	if err != nil {
		return err
	}
	defer cl.Close()
	for c.left > 0 {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return fmt.Errorf("%d records short: %w", c.left, err)
		}
		for it := fetches.RecordIter(); !it.Done(); {
			r := it.Next()
			got := rec{key: string(r.Key), value: string(r.Value), timestamp: r.Timestamp.UnixMilli()}
			for _, h := range r.Headers {
				got.addHeader(h.Key, h.Value)
			}
			if err := inspect(r); err != nil {
				return err
			}
			if err := c.add(int(r.Partition), got); err != nil {
				return err
			}
		}
	}
	return nil
}

// connect returns a franz-go client for the length of the test.
func connect(t testing.TB, addr string, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	cl, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(addr)}, opts...)...)
	must(t, err)
	t.Cleanup(cl.Close)
	return cl
}

// createTopic creates a topic with settings given as key, value, key, value.
func createTopic(t testing.TB, addr, topic string, partitions int32, settings ...string) {
	t.Helper()
	configs := map[string]*string{}
	for i := 0; i+1 < len(settings); i += 2 {
		configs[settings[i]] = &settings[i+1]
	}
	resp, err := kadm.NewClient(connect(t, addr)).CreateTopic(t.Context(), partitions, 1, configs, topic)
	assert.Must(t, err, "create topic %s: %s", topic, resp.ErrMessage)
}

// endOffsets returns the end offset of each partition of a topic.
func endOffsets(ctx context.Context, cl *kgo.Client, topic string) (map[int32]int64, error) {
	listed, err := kadm.NewClient(cl).ListEndOffsets(ctx, topic)
	if err == nil {
		err = listed.Error()
	}
	if err != nil {
		return nil, err
	}
	ends := map[int32]int64{}
	listed.Each(func(o kadm.ListedOffset) { ends[o.Partition] = o.Offset })
	return ends, nil
}
