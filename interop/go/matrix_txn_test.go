package interop

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/IBM/sarama"
	"github.com/confluentinc/confluent-kafka-go/v2/kafka"
	"github.com/twmb/franz-go/pkg/kgo"

	"muster/internal/assert"
)

// transactor is a client with transactions.
type transactor struct {
	// transact writes values to partition 0 of a topic, some in each transaction, and
	// commits and aborts them in turns.
	transact func(ctx context.Context, addr, id, topic string, transactions [][]string) error
	// read reads values of committed transactions.
	read func(ctx context.Context, addr, topic string, n int) ([]string, error)
}

var transactors = map[string]transactor{
	"franz-go":   {franzTransact, franzReadCommitted},
	"sarama":     {saramaTransact, saramaReadCommitted},
	"librdkafka": {librdkafkaTransact, librdkafkaReadCommitted},
}

// commitAndAbort has a client run transactions, and read back those that it has
// committed.
func commitAndAbort(t *testing.T, name string) {
	c, topic := transactors[name], matrixTopic(t, "transactions-"+name, 1)
	var transactions [][]string
	var committed []string
	for i := range 6 {
		var values []string
		for n := range 50 {
			values = append(values, fmt.Sprintf("%d of %d", n, i))
		}
		transactions = append(transactions, values)
		if i%2 == 1 {
			committed = append(committed, values...)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), clientTimeout)
	defer cancel()
	must(t, c.transact(ctx, matrixBroker, topic, topic, transactions))
	got, err := c.read(ctx, matrixBroker, topic, len(committed))
	assert.True(t, err == nil && slices.Equal(got, committed), "read %v, %v; want %v", got, err, committed)
}

func franzTransact(ctx context.Context, addr, id, topic string, transactions [][]string) error {
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.TransactionalID(id), kgo.DefaultProduceTopic(topic))
	if err != nil {
		return err
	}
	defer cl.Close()
	for i, values := range transactions {
		if err := cl.BeginTransaction(); err != nil {
			return err
		}
		var records []*kgo.Record
		for _, v := range values {
			records = append(records, kgo.StringRecord(v))
		}
		if err := cl.ProduceSync(ctx, records...).FirstErr(); err != nil {
			return err
		}
		if err := cl.EndTransaction(ctx, i%2 == 1); err != nil {
			return err
		}
	}
	return nil
}

func franzReadCommitted(ctx context.Context, addr, topic string, n int) ([]string, error) {
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeTopics(topic))
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	var got []string
	for len(got) < n {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return got, err
		}
		fetches.EachRecord(func(r *kgo.Record) { got = append(got, string(r.Value)) })
	}
	return got, nil
}

func saramaTransact(ctx context.Context, addr, id, topic string, transactions [][]string) error {
	cfg := sarama.NewConfig()
	cfg.Producer.Idempotent, cfg.Producer.RequiredAcks, cfg.Net.MaxOpenRequests = true, sarama.WaitForAll, 1
	cfg.Producer.Transaction.ID = id
	cfg.Producer.Return.Successes = true
	p, err := sarama.NewSyncProducer([]string{addr}, cfg)
	if err != nil {
		return err
	}
	defer p.Close()
	for i, values := range transactions {
		if err := p.BeginTxn(); err != nil {
			return err
		}
		var messages []*sarama.ProducerMessage
		for _, v := range values {
			messages = append(messages, &sarama.ProducerMessage{Topic: topic, Value: sarama.StringEncoder(v)})
		}
		if err := p.SendMessages(messages); err != nil {
			return err
		}
		end := p.AbortTxn
		if i%2 == 1 {
			end = p.CommitTxn
		}
		if err := end(); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func saramaReadCommitted(ctx context.Context, addr, topic string, n int) ([]string, error) {
	cfg := sarama.NewConfig()
	cfg.Consumer.IsolationLevel = sarama.ReadCommitted
	consumer, err := sarama.NewConsumer([]string{addr}, cfg)
	if err != nil {
		return nil, err
	}
	defer consumer.Close()
	pc, err := consumer.ConsumePartition(topic, 0, sarama.OffsetOldest)
	if err != nil {
		return nil, err
	}
	defer pc.Close()
	var got []string
	for len(got) < n {
		select {
		case m := <-pc.Messages():
			got = append(got, string(m.Value))
		case <-ctx.Done():
			return got, ctx.Err()
		}
	}
	return got, nil
}

func librdkafkaTransact(ctx context.Context, addr, id, topic string, transactions [][]string) error {
	p, err := kafka.NewProducer(&kafka.ConfigMap{"bootstrap.servers": addr, "transactional.id": id})
	if err != nil {
		return err
	}
	defer p.Close()
	if err := p.InitTransactions(ctx); err != nil {
		return err
	}
	for i, values := range transactions {
		if err := p.BeginTransaction(); err != nil {
			return err
		}
		for _, v := range values {
			m := &kafka.Message{TopicPartition: kafka.TopicPartition{Topic: &topic, Partition: 0}, Value: []byte(v)}
			if err := librdkafkaSend(ctx, p, m); err != nil {
				return err
			}
		}
		if err := librdkafkaDelivered(ctx, p, len(values)); err != nil {
			return err
		}
		end := p.AbortTransaction
		if i%2 == 1 {
			end = p.CommitTransaction
		}
		if err := end(ctx); err != nil {
			return err
		}
	}
	return nil
}

func librdkafkaReadCommitted(ctx context.Context, addr, topic string, n int) ([]string, error) {
	consumer, err := kafka.NewConsumer(&kafka.ConfigMap{
		"bootstrap.servers": addr, "group.id": "unused", "enable.auto.commit": false, "isolation.level": "read_committed",
	})
	if err != nil {
		return nil, err
	}
	defer consumer.Close()
	if err := consumer.Assign([]kafka.TopicPartition{{Topic: &topic, Partition: 0, Offset: kafka.OffsetBeginning}}); err != nil {
		return nil, err
	}
	var got []string
	for len(got) < n && ctx.Err() == nil {
		switch e := consumer.Poll(100).(type) {
		case *kafka.Message:
			got = append(got, string(e.Value))
		case kafka.Error:
			return got, e
		}
	}
	return got, ctx.Err()
}
