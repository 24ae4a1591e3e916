package interop

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// consumerClients run a member of a consumer group (KIP-848) until the context
// ends, and then leave the group. When a partition comes they say so once it is
// theirs, and when it goes before they let the broker know: what they say at the same
// time, they have at the same time.
var consumerClients = map[string]func(context.Context, memberSpec, *reporter) error{
	"franz-go":   franzConsumer,
	"librdkafka": librdkafkaConsumer,
}

// topics reports an event of partitions of topics.
func (r *reporter) topics(event string, epoch int32, partitions map[string][]int32) {
	at := time.Now().UnixNano()
	for _, topic := range slices.Sorted(maps.Keys(partitions)) {
		r.report(memberReport{Event: event, Generation: max(epoch, 0), Topic: topic, Partitions: partitions[topic], At: at})
	}
}

func (r *reporter) recordsOf(topic string, partition int32, offsets ...int64) {
	r.report(memberReport{Event: eventRecords, Topic: topic, Partition: partition, Offsets: offsets, At: time.Now().UnixNano()})
}

// franzAssignors are the balancers by which franz-go asks for an assignor of the
// broker.
var franzAssignors = map[string]kgo.GroupBalancer{"uniform": kgo.StickyBalancer(), "range": kgo.RangeBalancer()}

func franzConsumer(ctx context.Context, spec memberSpec, out *reporter) error {
	cl, err := kgo.NewClient(franzConsumerOpts(spec, out)...)
	if err != nil {
		return err
	}
	defer franzLeave(cl, spec, out)
	for {
		fetches := cl.PollFetches(ctx)
		fetches.EachPartition(func(p kgo.FetchTopicPartition) {
			if len(p.Records) == 0 {
				return
			}
			offsets := make([]int64, len(p.Records))
			for i, r := range p.Records {
				offsets[i] = r.Offset
			}
			out.recordsOf(p.Topic, p.Partition, offsets...)
			cl.MarkCommitRecords(p.Records...)
		})
		if ctx.Err() != nil {
			return nil
		}
		var lost *kgo.ErrDataLoss
		for _, e := range fetches.Errors() {
			if errors.As(e.Err, &lost) {
				return fmt.Errorf("%s-%d: %w", e.Topic, e.Partition, e.Err)
			}
			if errors.Is(e.Err, kerr.UnknownTopicID) {
				// It was deleted and created again: franz-go reads the new one only
				// once it has been told to forget the old one.
				cl.PurgeTopicsFromConsuming(e.Topic)
			}
			out.note("fetch: %v", e.Err)
		}
	}
}

// franzLeave has a member leave its group. franz-go 1.22 does not name its group
// instance id when it leaves, and Kafka refuses that, as we do: a static member would
// be missed only when its session is over. So it is said for it, once it is silent.
func franzLeave(cl *kgo.Client, spec memberSpec, out *reporter) {
	member, _ := cl.GroupMetadata()
	cl.Close()
	if spec.InstanceID == "" {
		return
	}
	with, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(spec.Addr, ",")...))
	if err != nil {
		out.failed(err)
		return
	}
	defer with.Close()
	leave := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	leave.Group, leave.MemberID, leave.InstanceID, leave.MemberEpoch = spec.Group, member, &spec.InstanceID, -2
	resp, err := leave.RequestWith(context.Background(), with)
	if err == nil {
		err = kerr.ErrorForCode(resp.ErrorCode)
	}
	if err != nil {
		out.failed(fmt.Errorf("leave for a while: %w", err))
	}
}

func franzConsumerOpts(spec memberSpec, out *reporter) []kgo.Opt {
	epoch := func(cl *kgo.Client) int32 {
		_, e := cl.GroupMetadata()
		return e
	}
	opts := []kgo.Opt{
		kgo.SeedBrokers(strings.Split(spec.Addr, ",")...), kgo.ClientID(spec.ClientID), kgo.ConsumerGroup(spec.Group),
		kgo.ServerSideBalancer(), kgo.Balancers(franzAssignors[spec.Assignor]), kgo.RebalanceTimeout(spec.rebalance()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(memberMaxWait),
		kgo.AutoCommitMarks(), kgo.AutoCommitInterval(memberCommits), kgo.MetadataMaxAge(time.Second),
		kgo.MetadataMinAge(50 * time.Millisecond), kgo.RequestTimeoutOverhead(2 * time.Second),
		kgo.RetryBackoffFn(func(int) time.Duration { return 50 * time.Millisecond }),
		kgo.OnPartitionsAssigned(func(_ context.Context, cl *kgo.Client, partitions map[string][]int32) {
			out.topics(eventAssigned, epoch(cl), partitions)
		}),
		kgo.OnPartitionsRevoked(func(ctx context.Context, cl *kgo.Client, partitions map[string][]int32) {
			if err := cl.CommitMarkedOffsets(ctx); err != nil {
				out.note("commit before a revocation: %v", err)
			}
			out.topics(eventRevoked, epoch(cl), partitions)
		}),
		kgo.OnPartitionsLost(func(_ context.Context, cl *kgo.Client, partitions map[string][]int32) {
			out.topics(eventLost, epoch(cl), partitions)
		}),
	}
	if spec.InstanceID != "" {
		opts = append(opts, kgo.InstanceID(spec.InstanceID))
	}
	if spec.Pattern != "" {
		return append(opts, kgo.ConsumeRegex(), kgo.ConsumeTopics(spec.Pattern))
	}
	return append(opts, kgo.ConsumeTopics(spec.Topic))
}

func librdkafkaConsumer(ctx context.Context, spec memberSpec, out *reporter) error {
	config := kafka.ConfigMap{
		"bootstrap.servers": spec.Addr, "client.id": spec.ClientID, "group.id": spec.Group,
		"group.protocol": "consumer", "group.remote.assignor": spec.Assignor, "max.poll.interval.ms": spec.RebalanceMillis,
		"auto.offset.reset": "earliest", "fetch.wait.max.ms": int(memberMaxWait.Milliseconds()),
		"enable.auto.offset.store": false, "auto.commit.interval.ms": int(memberCommits.Milliseconds()),
		"topic.metadata.refresh.interval.ms": 1000, "topic.metadata.refresh.fast.interval.ms": 50,
		"reconnect.backoff.max.ms": 200, "fetch.error.backoff.ms": 50, "retry.backoff.ms": 50,
		"log_level": 0, // It reports every lost connection.
	}
	if spec.InstanceID != "" {
		config["group.instance.id"] = spec.InstanceID
	}
	consumer, err := kafka.NewConsumer(&config)
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
			out.topics(eventAssigned, librdkafkaGeneration(c), librdkafkaByTopic(e.Partitions))
		case kafka.RevokedPartitions:
			event := eventRevoked
			if c.AssignmentLost() {
				event = eventLost
			}
			out.topics(event, 0, librdkafkaByTopic(e.Partitions))
		}
		return nil // confluent-kafka-go then does what the event says.
	})
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		if err := librdkafkaPoll(consumer, out); err != nil {
			return err
		}
	}
	return consumer.Close() // It leaves the group.
}

// librdkafkaPoll takes in one event; an error is one that the client does not get
// over.
func librdkafkaPoll(consumer *kafka.Consumer, out *reporter) error {
	switch e := consumer.Poll(50).(type) {
	case *kafka.Message:
		if e.TopicPartition.Error != nil {
			out.note("fetch: %v", e.TopicPartition.Error)
			return nil
		}
		out.recordsOf(*e.TopicPartition.Topic, e.TopicPartition.Partition, int64(e.TopicPartition.Offset))
		if _, err := consumer.StoreMessage(e); err != nil {
			out.note("store an offset: %v", err) // The partition was revoked meanwhile.
		}
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
