package interop

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"
)

// copierHangs is longer than a transaction can last.
const copierHangs = 2 * copierTimeout

// rdCopier copies with librdkafka, which leaves more of it to the application.
type rdCopier struct {
	spec     copierSpec
	rng      *rand.Rand
	consumer *kafka.Consumer
	producer *kafka.Producer
	batch    []*kafka.Message       // polled, and still of partitions that are its own
	next     map[int32]kafka.Offset // of the partitions that are its own: what is to be polled
	failed   error                  // of taking partitions over
}

func librdkafkaCopier(ctx context.Context, spec copierSpec, rng *rand.Rand) error {
	c := &rdCopier{spec: spec, rng: rng}
	if err := c.open(); err != nil {
		return err
	}
	defer c.producer.Close()
	for ctx.Err() == nil {
		if err := c.poll(); err != nil {
			return err
		}
		if len(c.batch) == 0 {
			continue
		}
		if err := c.copy(); err != nil {
			return err
		}
	}
	return c.consumer.Close() // It leaves the group.
}

func (c *rdCopier) open() (err error) {
	config := func(more kafka.ConfigMap) *kafka.ConfigMap {
		all := kafka.ConfigMap{
			"bootstrap.servers": strings.Join(c.spec.Addrs, ","), "reconnect.backoff.max.ms": 200, "log_level": 0,
			"topic.metadata.refresh.fast.interval.ms": 50, "retry.backoff.ms": 50, "socket.timeout.ms": 2000,
		}
		if debug := os.Getenv("INTEROP_COPIER_DEBUG"); debug != "" {
			all["debug"], all["log_level"] = debug, 7 // For looking into a failure: librdkafka says then what it does.
		}
		for name, value := range more {
			all[name] = value
		}
		return &all
	}
	c.producer, err = kafka.NewProducer(config(kafka.ConfigMap{
		"transactional.id": c.spec.ID, "transaction.timeout.ms": int(copierTimeout.Milliseconds()), "linger.ms": 0,
	}))
	if err != nil {
		return err
	}
	go func() {
		for range c.producer.Events() { // Deliveries: the end of the transaction tells of failures.
		}
	}()
	if err := retried(c.producer.InitTransactions); err != nil {
		return fmt.Errorf("init: %w", err)
	}
	c.consumer, err = kafka.NewConsumer(config(kafka.ConfigMap{
		"group.id": c.spec.Group, "partition.assignment.strategy": "range", "auto.offset.reset": "earliest", "enable.auto.commit": false,
		"session.timeout.ms": int(copierSession.Milliseconds()), "heartbeat.interval.ms": int(copierHeartbeats.Milliseconds()),
		"fetch.wait.max.ms": 200, "fetch.error.backoff.ms": 50, "isolation.level": "read_committed",
	}))
	if err != nil {
		return err
	}
	return c.consumer.Subscribe(c.spec.In, func(_ *kafka.Consumer, e kafka.Event) error {
		switch e := e.(type) {
		case kafka.AssignedPartitions:
			c.failed = c.begin(e.Partitions)
		case kafka.RevokedPartitions:
			c.batch, c.next = nil, nil // Whoever has them next begins at what is committed, also if it is this one.
		}
		return nil
	})
}

// begin takes partitions over, from what is committed on. It notes where that is,
// since librdkafka was seen to return records that it had fetched two rebalances
// earlier, and then those from the offset on where it was to begin.
func (c *rdCopier) begin(partitions []kafka.TopicPartition) error {
	committed, err := c.consumer.Committed(partitions, int(copierTimeout.Milliseconds()))
	if err != nil {
		return fmt.Errorf("committed offsets: %w", err)
	}
	c.next = map[int32]kafka.Offset{}
	for i := range committed {
		if committed[i].Error != nil {
			return fmt.Errorf("committed offsets: %w", committed[i].Error)
		}
		committed[i].Offset = max(committed[i].Offset, 0) // None is negative.
		c.next[committed[i].Partition] = committed[i].Offset
	}
	return c.consumer.Assign(committed)
}

// take keeps a record if it is the next one of its partition.
func (c *rdCopier) take(m *kafka.Message) {
	p, offset := m.TopicPartition.Partition, m.TopicPartition.Offset
	if next, ok := c.next[p]; !ok || offset != next {
		fmt.Fprintf(os.Stderr, "partition %d: record %d is left out, at %d, own: %t\n", p, offset, next, ok)
		return
	}
	c.next[p]++
	c.batch = append(c.batch, m)
}

// poll waits for records, and takes those that are there.
func (c *rdCopier) poll() error {
	c.batch = nil
	for wait := 200; len(c.batch) < copierPoll; wait = 0 {
		switch e := c.consumer.Poll(wait).(type) {
		case *kafka.Message:
			if e.TopicPartition.Error != nil {
				fmt.Fprintln(os.Stderr, "poll:", e.TopicPartition.Error)
				continue
			}
			c.take(e)
		case kafka.Error:
			if e.IsFatal() {
				return e
			}
		case nil:
			return c.failed
		}
	}
	return c.failed
}

// copy copies what was polled in a transaction. If that is aborted, it is polled
// again.
func (c *rdCopier) copy() error {
	// SendOffsetsToTransaction does not return, whatever its timeout, if the coordinator
	// of the group goes away at the wrong moment (librdkafka issues 5456 and 5511).
	hangs := time.AfterFunc(copierHangs, func() {
		fmt.Fprintln(os.Stderr, "librdkafka hangs in a transaction")
		os.Exit(1)
	})
	defer hangs.Stop()
	if err := c.producer.BeginTransaction(); err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	err := c.produce()
	if err == nil && c.rng.IntN(copierAborts) > 0 {
		if err = retried(c.producer.CommitTransaction); err == nil {
			ended(true, len(c.batch))
			return nil
		}
	}
	var failure kafka.Error
	if err != nil && (!errors.As(err, &failure) || !failure.TxnRequiresAbort()) {
		return err
	}
	if err := retried(c.producer.AbortTransaction); err != nil {
		return fmt.Errorf("abort: %w", err)
	}
	ended(false, len(c.batch))
	return c.rewind()
}

// produce writes the records, and the offsets behind them.
func (c *rdCopier) produce() error {
	next := map[int32]kafka.Offset{}
	for _, m := range c.batch {
		to := kafka.TopicPartition{Topic: &c.spec.Out, Partition: copyPartition(m.Key, copyOut)}
		if err := c.producer.Produce(&kafka.Message{TopicPartition: to, Key: m.Key, Value: m.Value}, nil); err != nil {
			return err
		}
		next[m.TopicPartition.Partition] = m.TopicPartition.Offset + 1
	}
	who, err := c.consumer.GetConsumerGroupMetadata()
	if err != nil {
		return err
	}
	var offsets []kafka.TopicPartition
	for p, offset := range next {
		offsets = append(offsets, kafka.TopicPartition{Topic: &c.spec.In, Partition: p, Offset: offset})
	}
	return retried(func(ctx context.Context) error { return c.producer.SendOffsetsToTransaction(ctx, offsets, who) })
}

// rewind goes back to where the batch began.
func (c *rdCopier) rewind() error {
	seen := map[int32]bool{}
	for _, m := range c.batch {
		if p := m.TopicPartition.Partition; !seen[p] {
			seen[p], c.next[p] = true, m.TopicPartition.Offset
			if err := c.consumer.Seek(m.TopicPartition, 0); err != nil {
				return fmt.Errorf("seek: %w", err)
			}
		}
	}
	return nil
}

// retried does something again as long as librdkafka says that this helps.
func retried(do func(context.Context) error) error {
	deadline := time.Now().Add(copierPatience)
	for {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		err := do(ctx)
		cancel()
		var failure kafka.Error
		if err == nil || !errors.As(err, &failure) || !failure.IsRetriable() || time.Now().After(deadline) {
			return err
		}
	}
}
