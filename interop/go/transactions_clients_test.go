package interop

import (
	"fmt"
	"testing"
	"time"

	"github.com/IBM/sarama"
	kafka "github.com/confluentinc/confluent-kafka-go/v2/kafka"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"muster/internal/assert"
)

func TestTransactionsOfLibrdkafka(t *testing.T) {
	b := serve(t, t.TempDir())
	createTopic(t, b.addr(), "out", 2)
	createTopic(t, b.addr(), "in", 1)
	open := func() *kafka.Producer {
		t.Helper()
		p, err := kafka.NewProducer(&kafka.ConfigMap{"bootstrap.servers": b.addr(), "transactional.id": "rd", "transaction.timeout.ms": 60000})
		must(t, err)
		t.Cleanup(p.Close)
		go func() {
			for range p.Events() { // Deliveries; EndTransaction tells of failures.
			}
		}()
		must(t, p.InitTransactions(t.Context()))
		return p
	}
	p := open()
	group, err := kafka.NewConsumer(&kafka.ConfigMap{"bootstrap.servers": b.addr(), "group.id": "g"})
	must(t, err)
	defer group.Close()
	who, err := group.GetConsumerGroupMetadata()
	must(t, err)
	in := "in"
	round := func(p *kafka.Producer, commit bool, offset int, values ...string) {
		t.Helper()
		must(t, p.BeginTransaction())
		topic := "out"
		for i, v := range values {
			err := p.Produce(&kafka.Message{TopicPartition: kafka.TopicPartition{Topic: &topic, Partition: int32(i % 2)}, Value: []byte(v)}, nil)
			must(t, err)
		}
		offsets := []kafka.TopicPartition{{Topic: &in, Partition: 0, Offset: kafka.Offset(offset)}}
		must(t, p.SendOffsetsToTransaction(t.Context(), offsets, who))
		end := p.AbortTransaction
		if commit {
			end = p.CommitTransaction
		}
		must(t, end(t.Context()))
	}
	round(p, true, 3, "a1", "a2", "a3")
	round(p, false, 9, "b1", "b2")
	newer := open()
	round(newer, true, 5, "c1")
	if err := p.BeginTransaction(); err == nil {
		topic := "out"
		_ = p.Produce(&kafka.Message{TopicPartition: kafka.TopicPartition{Topic: &topic, Partition: 0}, Value: []byte("late")}, nil)
		assert.Error(t, p.CommitTransaction(t.Context()), "the older instance committed")
	}
	wantTopic(t, b.addr(), "out", kgo.ReadCommitted(), "a1", "a2", "a3", "c1")
	wantCommitted(t, b.addr(), "g", 5)
}

// wantCommitted waits until a group has committed an offset of partition 0 of the
// topic "in".
func wantCommitted(t *testing.T, addr, group string, want int64) {
	t.Helper()
	waitFor(t, "the committed offset", func() error {
		offsets, err := kadm.NewClient(connect(t, addr)).FetchOffsets(t.Context(), group)
		if err != nil {
			return err
		}
		if o, _ := offsets.Lookup("in", 0); o.At != want {
			return fmt.Errorf("%d, want %d", o.At, want)
		}
		return nil
	})
}

func TestTransactionsOfSarama(t *testing.T) {
	b := serve(t, t.TempDir())
	createTopic(t, b.addr(), "out", 2)
	createTopic(t, b.addr(), "in", 1)
	cfg := sarama.NewConfig()
	cfg.Version = sarama.V2_8_0_0
	cfg.Producer.Idempotent, cfg.Producer.RequiredAcks, cfg.Net.MaxOpenRequests = true, sarama.WaitForAll, 1
	cfg.Producer.Return.Successes, cfg.Producer.Transaction.ID, cfg.Producer.Transaction.Timeout = true, "sarama", time.Minute
	cfg.Producer.Partitioner = sarama.NewManualPartitioner
	p, err := sarama.NewSyncProducer([]string{b.addr()}, cfg)
	must(t, err)
	defer p.Close()
	round := func(commit bool, offset int64, values ...string) {
		t.Helper()
		must(t, p.BeginTxn())
		for i, v := range values {
			if _, _, err := p.SendMessage(&sarama.ProducerMessage{Topic: "out", Partition: int32(i % 2), Value: sarama.StringEncoder(v)}); err != nil {
				t.Fatal(err)
			}
		}
		err := p.AddOffsetsToTxn(map[string][]*sarama.PartitionOffsetMetadata{"in": {{Partition: 0, Offset: offset}}}, "g")
		must(t, err)
		end := p.AbortTxn
		if commit {
			end = p.CommitTxn
		}
		must(t, end())
	}
	round(true, 3, "a1", "a2", "a3")
	round(false, 9, "b1", "b2")
	round(true, 5, "c1")
	wantTopic(t, b.addr(), "out", kgo.ReadCommitted(), "a1", "a2", "a3", "c1")
	wantTopic(t, b.addr(), "out", kgo.ReadUncommitted(), "a1", "a2", "a3", "b1", "b2", "c1")
	wantCommitted(t, b.addr(), "g", 5)
}
