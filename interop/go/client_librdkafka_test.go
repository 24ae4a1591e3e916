package interop

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"
)

var librdkafka = client{
	name: "librdkafka", byKey: true, idempotent: true,
	produce: librdkafkaProduce,
	consume: librdkafkaConsume,
}

func librdkafkaProduce(ctx context.Context, addr, topic, codec string, recs []rec) error {
	p, err := kafka.NewProducer(&kafka.ConfigMap{
		"bootstrap.servers": addr, "enable.idempotence": true, "compression.type": codec,
	})
	if err != nil {
		return err
	}
	defer p.Close()
	delivered := make(chan error, 1)
	go func() { delivered <- librdkafkaDelivered(ctx, p, len(recs)) }()
	for i := range recs {
		m := &kafka.Message{
			TopicPartition: kafka.TopicPartition{Topic: &topic, Partition: kafka.PartitionAny},
			Key:            []byte(recs[i].key), Value: []byte(recs[i].value), Timestamp: time.UnixMilli(recs[i].timestamp),
		}
		for _, h := range recs[i].headerList() {
			m.Headers = append(m.Headers, kafka.Header{Key: h.name, Value: []byte(h.value)})
		}
		if err := librdkafkaSend(ctx, p, m); err != nil {
			return err
		}
	}
	return <-delivered
}

// librdkafkaSend hands a record to the producer, waiting while its queue is
// full.
func librdkafkaSend(ctx context.Context, p *kafka.Producer, m *kafka.Message) error {
	for {
		err := p.Produce(m, nil)
		var kerr kafka.Error
		if !errors.As(err, &kerr) || kerr.Code() != kafka.ErrQueueFull {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		p.Flush(10)
	}
}

// librdkafkaDelivered waits for the delivery reports of n records.
func librdkafkaDelivered(ctx context.Context, p *kafka.Producer, n int) error {
	for n > 0 {
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d records not acknowledged: %w", n, ctx.Err())
		case e := <-p.Events():
			switch e := e.(type) {
			case *kafka.Message:
				if e.TopicPartition.Error != nil {
					return e.TopicPartition.Error
				}
				n--
			case kafka.Error:
				return e
			}
		}
	}
	return nil
}

func librdkafkaConsume(ctx context.Context, addr, topic string, c *collector) error {
	// A group id must be set, though nothing is done with it.
	consumer, err := kafka.NewConsumer(&kafka.ConfigMap{
		"bootstrap.servers": addr, "group.id": "unused", "enable.auto.commit": false,
	})
	if err != nil {
		return err
	}
	defer consumer.Close()
	var from []kafka.TopicPartition
	for p := range c.parts {
		from = append(from, kafka.TopicPartition{Topic: &topic, Partition: int32(p), Offset: kafka.OffsetBeginning})
	}
	if err := consumer.Assign(from); err != nil {
		return err
	}
	for c.left > 0 {
		if ctx.Err() != nil {
			return fmt.Errorf("%d records short: %w", c.left, ctx.Err())
		}
		switch e := consumer.Poll(100).(type) {
		case *kafka.Message:
			if e.TopicPartition.Error != nil {
				return e.TopicPartition.Error
			}
			r := rec{key: string(e.Key), value: string(e.Value), timestamp: e.Timestamp.UnixMilli()}
			for _, h := range e.Headers {
				r.addHeader(h.Key, h.Value)
			}
			if err := c.add(int(e.TopicPartition.Partition), r); err != nil {
				return err
			}
		case kafka.Error:
			return e
		}
	}
	return nil
}
