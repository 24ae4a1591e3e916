package interop

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/assert"
)

// Someone looks at the offsets topic before any group is there. What a group
// commits afterwards must be just as safe.
func TestKcatLookingAtTheOffsetsTopicDoesNoHarm(t *testing.T) {
	addr := onDisk(t)
	out, err := exec.CommandContext(t.Context(), "kcat", "-L", "-b", addr, "-t", "__consumer_offsets").CombinedOutput()
	assert.True(t, err == nil && strings.Contains(string(out), "with 50 partitions"), "kcat -L: %v\n%s", err, out)
	adm := kadm.NewClient(connect(t, addr))
	described, err := adm.DescribeTopicConfigs(t.Context(), "__consumer_offsets")
	must(t, err)
	for _, c := range described[0].Configs {
		if c.Key == "cleanup.policy" && c.MaybeValue() != "compact" {
			t.Errorf("cleanup.policy is %q", c.MaybeValue())
		}
	}
	var before kadm.Offsets
	before.Add(kadm.Offset{Topic: "__consumer_offsets", Partition: 0, At: -1, LeaderEpoch: -1})
	deleted, err := adm.DeleteRecords(t.Context(), before)
	if err != nil || !errors.Is(deleted.Error(), kerr.InvalidTopicException) {
		t.Errorf("DeleteRecords: %v, %v", err, deleted.Error())
	}
	grown, err := adm.UpdatePartitions(t.Context(), 60, "__consumer_offsets")
	if err != nil || !errors.Is(grown.Error(), kerr.InvalidTopicException) {
		t.Errorf("CreatePartitions: %v, %v", err, grown.Error())
	}
}

// librdkafka fails the records that the broker names, and tells the others of
// their batch that they could be sent again.
func TestLibrdkafkaLearnsWhichRecordsOfABatchAreBad(t *testing.T) {
	addr, topic := onDisk(t), "compacted"
	createTopic(t, addr, topic, 1, "cleanup.policy", "compact")
	p, err := kafka.NewProducer(&kafka.ConfigMap{"bootstrap.servers": addr, "linger.ms": 3000, "retries": 0})
	must(t, err)
	defer p.Close()
	for i, key := range [][]byte{[]byte("a"), nil, []byte("b"), nil} {
		m := &kafka.Message{TopicPartition: kafka.TopicPartition{Topic: &topic}, Key: key, Value: []byte(fmt.Sprint(i))}
		must(t, p.Produce(m, nil))
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	got := map[string]kafka.ErrorCode{}
	for len(got) < 4 {
		select {
		case <-ctx.Done():
			t.Fatalf("reports: %v", got)
		case e := <-p.Events():
			if m, ok := e.(*kafka.Message); ok {
				var failed kafka.Error
				errors.As(m.TopicPartition.Error, &failed)
				got[string(m.Value)] = failed.Code()
			}
		}
	}
	bad, other := kafka.ErrInvalidRecord, kafka.ErrInvalidDifferentRecord
	assert.EqualMaps(t, got, map[string]kafka.ErrorCode{"0": other, "1": bad, "2": other, "3": bad})
}
