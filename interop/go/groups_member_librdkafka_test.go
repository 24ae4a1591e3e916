package interop

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"reflect"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"
)

// librdkafkaMember stores the offset of what was reported; librdkafka commits
// what is stored, from time to time and when partitions are revoked.
func librdkafkaMember(ctx context.Context, spec memberSpec, out *reporter) error {
	config := kafka.ConfigMap{
		"bootstrap.servers": spec.Addr, "client.id": spec.ClientID,
		"group.id": spec.Group, "partition.assignment.strategy": spec.Assignor,
		"session.timeout.ms": spec.SessionMillis, "heartbeat.interval.ms": spec.HeartbeatMillis,
		// This is what it sends as its rebalance timeout.
		"max.poll.interval.ms": spec.RebalanceMillis,
		"auto.offset.reset":    "earliest", "fetch.wait.max.ms": int(memberMaxWait.Milliseconds()),
		"enable.auto.offset.store": false, "auto.commit.interval.ms": int(memberCommits.Milliseconds()),
		"reconnect.backoff.max.ms": 200, "statistics.interval.ms": 500,
		"log_level": 0, // It reports every lost connection.
	}
	if spec.InstanceID != "" {
		config["group.instance.id"] = spec.InstanceID
	}
	if spec.Brisk {
		config["topic.metadata.refresh.fast.interval.ms"], config["fetch.error.backoff.ms"] = 50, 50
		config["retry.backoff.ms"], config["socket.timeout.ms"] = 50, 2000
	}
	consumer, err := kafka.NewConsumer(&config)
	if err != nil {
		return err
	}
	err = consumer.SubscribeTopics([]string{spec.Topic}, func(c *kafka.Consumer, e kafka.Event) error {
		switch e := e.(type) {
		case kafka.AssignedPartitions:
			out.assigned(librdkafkaGeneration(c), librdkafkaPartitions(e.Partitions))
		case kafka.RevokedPartitions:
			if c.AssignmentLost() {
				out.lost(librdkafkaPartitions(e.Partitions))
			} else {
				out.revoked(librdkafkaPartitions(e.Partitions))
			}
		}
		return nil // confluent-kafka-go then does what the event says.
	})
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		switch e := consumer.Poll(50).(type) {
		case *kafka.Message:
			if e.TopicPartition.Error != nil {
				out.note("fetch: %v", e.TopicPartition.Error)
				continue
			}
			out.record(e.TopicPartition.Partition, int64(e.TopicPartition.Offset))
			if _, err := consumer.StoreMessage(e); err != nil {
				out.note("store an offset: %v", err) // The partition was revoked meanwhile.
			}
		case *kafka.Stats:
			out.report(memberReport{Event: eventHeartbeats, Count: librdkafkaHeartbeats(e.String())})
		case kafka.Error:
			if e.IsFatal() {
				return e
			}
			out.note("%v", e)
		}
	}
	return consumer.Close() // It leaves the group.
}

func librdkafkaPartitions(of []kafka.TopicPartition) []int32 {
	partitions := make([]int32, len(of))
	for i := range of {
		partitions[i] = of[i].Partition
	}
	return partitions
}

// librdkafkaGeneration finds the generation in the group metadata, which is
// meant for transactional producers only: a mark, and then the generation.
func librdkafkaGeneration(c *kafka.Consumer) int32 {
	metadata, err := c.GetConsumerGroupMetadata()
	if err != nil {
		return 0
	}
	rest, ok := bytes.CutPrefix(reflect.ValueOf(metadata).Elem().FieldByName("serialized").Bytes(), []byte("CGMDv2:"))
	if !ok || len(rest) < 4 {
		return 0
	}
	return int32(binary.NativeEndian.Uint32(rest))
}

// librdkafkaHeartbeats finds how many heartbeats were sent, in the statistics. It
// sends no second one before the first is answered.
func librdkafkaHeartbeats(statistics string) int {
	var s struct {
		Brokers map[string]struct {
			Req map[string]int
		}
	}
	if err := json.Unmarshal([]byte(statistics), &s); err != nil {
		return 0
	}
	sent := 0
	for _, b := range s.Brokers {
		sent += b.Req["Heartbeat"]
	}
	return sent
}
