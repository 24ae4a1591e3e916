package interop

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/IBM/sarama"
)

var saramaClient = client{
	name: "sarama", byKey: true, idempotent: true,
	produce: saramaProduce,
	consume: saramaConsume,
}

func saramaCodec(name string) sarama.CompressionCodec {
	return map[string]sarama.CompressionCodec{
		"none": sarama.CompressionNone, "gzip": sarama.CompressionGZIP, "snappy": sarama.CompressionSnappy,
		"lz4": sarama.CompressionLZ4, "zstd": sarama.CompressionZSTD,
	}[name]
}

func saramaProduce(ctx context.Context, addr, topic, codec string, recs []rec) error {
	cfg := sarama.NewConfig()
	cfg.Producer.Compression = saramaCodec(codec)
	cfg.Producer.Return.Successes = true
	// Sarama demands these three for an idempotent producer.
	cfg.Producer.Idempotent = true
	cfg.Producer.RequiredAcks = sarama.WaitForAll
	cfg.Net.MaxOpenRequests = 1
	p, err := sarama.NewAsyncProducer([]string{addr}, cfg)
	if err != nil {
		return err
	}
	delivered := make(chan error, 1)
	go func() { delivered <- saramaDelivered(ctx, p, len(recs)) }()
	for i := range recs {
		m := &sarama.ProducerMessage{
			Topic: topic, Key: sarama.StringEncoder(recs[i].key), Value: sarama.StringEncoder(recs[i].value),
			Timestamp: time.UnixMilli(recs[i].timestamp),
		}
		for _, h := range recs[i].headerList() {
			m.Headers = append(m.Headers, sarama.RecordHeader{Key: []byte(h.name), Value: []byte(h.value)})
		}
		select {
		case p.Input() <- m:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err := <-delivered; err != nil {
		p.AsyncClose()
		return err
	}
	return p.Close()
}

// saramaDelivered waits for the acknowledgements of n records.
func saramaDelivered(ctx context.Context, p sarama.AsyncProducer, n int) error {
	for n > 0 {
		select {
		case <-p.Successes():
			n--
		case err := <-p.Errors():
			return err
		case <-ctx.Done():
			return fmt.Errorf("%d records not acknowledged: %w", n, ctx.Err())
		}
	}
	return nil
}

func saramaConsume(ctx context.Context, addr, topic string, c *collector) error {
	cfg := sarama.NewConfig()
	cfg.Consumer.Return.Errors = true
	consumer, err := sarama.NewConsumer([]string{addr}, cfg)
	if err != nil {
		return err
	}
	defer consumer.Close()
	ctx, cancel := context.WithCancel(ctx)
	var forwarding sync.WaitGroup
	defer forwarding.Wait()
	defer cancel()
	messages, failed := make(chan *sarama.ConsumerMessage, 256), make(chan error, len(c.parts))
	for p := range c.parts {
		pc, err := consumer.ConsumePartition(topic, int32(p), sarama.OffsetOldest)
		if err != nil {
			return err
		}
		forwarding.Go(func() { saramaForward(ctx, pc, messages, failed) })
	}
	for c.left > 0 {
		select {
		case m := <-messages:
			r := rec{key: string(m.Key), value: string(m.Value), timestamp: m.Timestamp.UnixMilli()}
			for _, h := range m.Headers {
				r.addHeader(string(h.Key), h.Value)
			}
			if err := c.add(int(m.Partition), r); err != nil {
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

// saramaForward passes on what comes from one partition, and closes it in the
// end.
func saramaForward(ctx context.Context, pc sarama.PartitionConsumer, messages chan<- *sarama.ConsumerMessage, failed chan<- error) {
	defer pc.Close()
	for {
		select {
		case m := <-pc.Messages():
			select {
			case messages <- m:
			case <-ctx.Done():
				return
			}
		case err := <-pc.Errors():
			failed <- err
			return
		case <-ctx.Done():
			return
		}
	}
}
