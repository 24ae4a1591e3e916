package interop

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"
)

// kafka-go has no idempotent producer, and its Writer spreads records over the
// partitions in turn whatever their keys. By default it does not wait for
// acknowledgements (acks=0), and then uses several connections for a partition,
// so that records arrive in any order.
var kafkaGo = client{
	name: "kafka-go", unordered: true,
	produce: kafkaGoProduce(kafka.RequireNone),
	consume: kafkaGoConsume,
}

var kafkaGoAcksAll = client{
	name:    "kafka-go acks=all",
	produce: kafkaGoProduce(kafka.RequireAll),
	consume: kafkaGoConsume,
}

func kafkaGoCodec(name string) kafka.Compression {
	return map[string]kafka.Compression{
		"gzip": kafka.Gzip, "snappy": kafka.Snappy, "lz4": kafka.Lz4, "zstd": kafka.Zstd,
	}[name]
}

func kafkaGoProduce(acks kafka.RequiredAcks) func(ctx context.Context, addr, topic, codec string, recs []rec) error {
	return func(ctx context.Context, addr, topic, codec string, recs []rec) error {
		// Writers share a transport, which takes seconds to notice a new topic.
		transport := &kafka.Transport{}
		defer transport.CloseIdleConnections()
		w := &kafka.Writer{Addr: kafka.TCP(addr), Topic: topic, Compression: kafkaGoCodec(codec), RequiredAcks: acks, Transport: transport}
		messages := make([]kafka.Message, len(recs))
		for i := range recs {
			m := kafka.Message{Key: []byte(recs[i].key), Value: []byte(recs[i].value), Time: time.UnixMilli(recs[i].timestamp)}
			for _, h := range recs[i].headerList() {
				m.Headers = append(m.Headers, kafka.Header{Key: h.name, Value: []byte(h.value)})
			}
			messages[i] = m
		}
		if err := w.WriteMessages(ctx, messages...); err != nil {
			w.Close()
			return err
		}
		return w.Close()
	}
}

func kafkaGoConsume(ctx context.Context, addr, topic string, c *collector) error {
	ctx, cancel := context.WithCancel(ctx)
	var reading sync.WaitGroup
	defer reading.Wait()
	defer cancel()
	messages, failed := make(chan kafka.Message, 256), make(chan error, len(c.parts))
	for p := range c.parts {
		reading.Go(func() { kafkaGoRead(ctx, addr, topic, p, messages, failed) })
	}
	for c.left > 0 {
		select {
		case m := <-messages:
			r := rec{key: string(m.Key), value: string(m.Value), timestamp: m.Time.UnixMilli()}
			for _, h := range m.Headers {
				r.addHeader(h.Key, h.Value)
			}
			if err := c.add(m.Partition, r); err != nil {
				return err
			}
		case err := <-failed:
			return err
		case <-ctx.Done():
			return fmt.Errorf("%d records short: %w", c.left, ctx.Err())
		}
	}
	return nil
}

// kafkaGoRead reads one partition until the context ends.
func kafkaGoRead(ctx context.Context, addr, topic string, partition int, messages chan<- kafka.Message, failed chan<- error) {
	// Close waits for the fetch under way, hence MaxWait.
	r := kafka.NewReader(kafka.ReaderConfig{Brokers: []string{addr}, Topic: topic, Partition: partition, MaxWait: 500 * time.Millisecond})
	defer r.Close()
	for {
		m, err := r.ReadMessage(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			failed <- err
			return
		}
		select {
		case messages <- m:
		case <-ctx.Done():
			return
		}
	}
}
