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
	consumer, err := kafka.NewConsumer(librdkafkaConfig(spec))
	if err != nil {
		return err
	}
	topic := spec.Topic
	if spec.Pattern != "" {
		topic = spec.Pattern
	}
	err = consumer.SubscribeTopics([]string{topic}, func(c *kafka.Consumer, e kafka.Event) error {
		switch e := e.(type) {
		case kafka.AssignedPartitions:
			out.partitions(eventAssigned, librdkafkaGeneration(c), librdkafkaByTopic(e.Partitions))
		case kafka.RevokedPartitions:
			event := eventRevoked
			if c.AssignmentLost() {
				event = eventLost
			}
			out.partitions(event, 0, librdkafkaByTopic(e.Partitions))
		}
		return nil // confluent-kafka-go then does what the event says.
	})
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		if err := librdkafkaPoll(consumer, spec.ClientID, out); err != nil {
			return err
		}
	}
	return consumer.Close() // It leaves the group.
}

func librdkafkaConfig(spec memberSpec) *kafka.ConfigMap {
	config := kafka.ConfigMap{
		"bootstrap.servers": spec.Addr, "client.id": spec.ClientID, "group.id": spec.Group,
		// This is what it sends as its rebalance timeout.
		"max.poll.interval.ms": spec.RebalanceMillis,
		"auto.offset.reset":    "earliest", "fetch.wait.max.ms": int(memberMaxWait.Milliseconds()),
		"enable.auto.offset.store": false, "auto.commit.interval.ms": int(memberCommits.Milliseconds()),
		"reconnect.backoff.max.ms": 200, "statistics.interval.ms": 500,
		"log_level": 0, // It reports every lost connection.
	}
	if spec.Consumer {
		config["group.protocol"], config["group.remote.assignor"] = "consumer", spec.Assignor
		config["topic.metadata.refresh.interval.ms"] = 1000
	} else {
		config["partition.assignment.strategy"] = spec.Assignor
		config["session.timeout.ms"], config["heartbeat.interval.ms"] = spec.SessionMillis, spec.HeartbeatMillis
		if spec.Brisk {
			config["socket.timeout.ms"] = 2000
		}
	}
	if spec.InstanceID != "" {
		config["group.instance.id"] = spec.InstanceID
	}
	if spec.Brisk {
		config["topic.metadata.refresh.fast.interval.ms"], config["fetch.error.backoff.ms"], config["retry.backoff.ms"] = 50, 50, 50
	}
	return &config
}

// librdkafkaPoll takes in one event; an error is one that the client does not get
// over. What is stored says which member has read it.
func librdkafkaPoll(consumer *kafka.Consumer, member string, out *reporter) error {
	switch e := consumer.Poll(50).(type) {
	case *kafka.Message:
		if e.TopicPartition.Error != nil {
			out.note("fetch: %v", e.TopicPartition.Error)
			return nil
		}
		out.records(*e.TopicPartition.Topic, e.TopicPartition.Partition, int64(e.TopicPartition.Offset))
		next := e.TopicPartition
		next.Offset++
		next.Metadata = &member
		if _, err := consumer.StoreOffsets([]kafka.TopicPartition{next}); err != nil {
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
	return nil
}

func librdkafkaByTopic(of []kafka.TopicPartition) map[string][]int32 {
	topics := map[string][]int32{}
	for i := range of {
		topics[*of[i].Topic] = append(topics[*of[i].Topic], of[i].Partition)
	}
	return topics
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
