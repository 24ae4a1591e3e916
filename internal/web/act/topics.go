package act

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/auth"
	"muster/internal/web/problem"
)

// actTimeout is what requests say that they wait for, in milliseconds. The request over
// HTTP ends before.
const actTimeout = 30_000

// CreateTopic creates a topic, and returns how many partitions it has.
func (a *Acts) CreateTopic(ctx context.Context, who Asker, t *NewTopic, validateOnly bool) (int32, error) {
	req := kmsg.NewPtrCreateTopicsRequest()
	req.Version, req.TimeoutMillis, req.ValidateOnly = 7, actTimeout, validateOnly
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = t.Name, -1, -1
	if t.Partitions != nil {
		topic.NumPartitions = *t.Partitions
	}
	for _, name := range slices.Sorted(maps.Keys(t.Configs)) {
		c := kmsg.NewCreateTopicsRequestTopicConfig()
		value := t.Configs[name]
		c.Name, c.Value = name, &value
		topic.Configs = append(topic.Configs, c)
	}
	req.Topics = append(req.Topics, topic)
	o, err := request[*kmsg.CreateTopicsResponse](ctx, a, who, req)
	if err != nil {
		return 0, err
	}
	if len(o.answer.Topics) != 1 {
		return 0, errNoOutcome
	}
	done := &o.answer.Topics[0]
	return done.NumPartitions, o.failed(done.ErrorCode, done.ErrorMessage, "")
}

// errNoOutcome is that the handler has not said what came of a request.
var errNoOutcome = fmt.Errorf("the broker did not say what came of it")

// DeleteTopic deletes a topic.
func (a *Acts) DeleteTopic(ctx context.Context, who Asker, topic string) error {
	req := kmsg.NewPtrDeleteTopicsRequest()
	req.Version, req.TimeoutMillis = 6, actTimeout
	t := kmsg.NewDeleteTopicsRequestTopic()
	t.Topic = &topic
	req.Topics = append(req.Topics, t)
	o, err := request[*kmsg.DeleteTopicsResponse](ctx, a, who, req)
	if err != nil {
		return err
	}
	if len(o.answer.Topics) != 1 {
		return errNoOutcome
	}
	return o.failed(o.answer.Topics[0].ErrorCode, o.answer.Topics[0].ErrorMessage, "")
}

// AddPartitions gives a topic more partitions.
func (a *Acts) AddPartitions(ctx context.Context, who Asker, topic string, count int32, validateOnly bool) error {
	req := kmsg.NewPtrCreatePartitionsRequest()
	req.Version, req.TimeoutMillis, req.ValidateOnly = 3, actTimeout, validateOnly
	t := kmsg.NewCreatePartitionsRequestTopic()
	t.Topic, t.Count = topic, count
	req.Topics = append(req.Topics, t)
	o, err := request[*kmsg.CreatePartitionsResponse](ctx, a, who, req)
	if err != nil {
		return err
	}
	if len(o.answer.Topics) != 1 {
		return errNoOutcome
	}
	return o.failed(o.answer.Topics[0].ErrorCode, o.answer.Topics[0].ErrorMessage, "")
}

// AlterTopic changes settings of a topic.
func (a *Acts) AlterTopic(ctx context.Context, who Asker, topic string, change *ChangedConfigs, validateOnly bool) error {
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	req.Version, req.ValidateOnly = 1, validateOnly
	r := kmsg.NewIncrementalAlterConfigsRequestResource()
	r.ResourceType, r.ResourceName = kmsg.ConfigResourceTypeTopic, topic
	add := func(name string, op kmsg.IncrementalAlterConfigOp, value *string) {
		c := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
		c.Name, c.Op, c.Value = name, op, value
		r.Configs = append(r.Configs, c)
	}
	for _, name := range slices.Sorted(maps.Keys(change.Set)) {
		value := change.Set[name]
		add(name, kmsg.IncrementalAlterConfigOpSet, &value)
	}
	for _, name := range change.Delete {
		add(name, kmsg.IncrementalAlterConfigOpDelete, nil)
	}
	req.Resources = append(req.Resources, r)
	o, err := request[*kmsg.IncrementalAlterConfigsResponse](ctx, a, who, req)
	if err != nil {
		return err
	}
	if len(o.answer.Resources) != 1 {
		return errNoOutcome
	}
	return o.failed(o.answer.Resources[0].ErrorCode, o.answer.Resources[0].ErrorMessage, "")
}

// DeleteRecords deletes records, and returns where each partition begins afterwards.
func (a *Acts) DeleteRecords(ctx context.Context, who Asker, topic string, before map[int32]int64) (map[int32]int64, error) {
	if err := a.ledElsewhere(who, auth.Delete, topic, slices.Sorted(maps.Keys(before))); err != nil {
		return nil, err
	}
	req := kmsg.NewPtrDeleteRecordsRequest()
	req.Version, req.TimeoutMillis = 2, actTimeout
	t := kmsg.NewDeleteRecordsRequestTopic()
	t.Topic = topic
	for _, i := range slices.Sorted(maps.Keys(before)) {
		p := kmsg.NewDeleteRecordsRequestTopicPartition()
		p.Partition, p.Offset = i, before[i]
		t.Partitions = append(t.Partitions, p)
	}
	req.Topics = append(req.Topics, t)
	o, err := request[*kmsg.DeleteRecordsResponse](ctx, a, who, req)
	if err != nil {
		return nil, err
	}
	starts := map[int32]int64{}
	for _, t := range o.answer.Topics {
		for _, p := range t.Partitions {
			if failed := o.failed(p.ErrorCode, nil, deleteRecordsWords(topic, p.Partition, p.ErrorCode)); failed != nil && err == nil {
				err = failed
			} else if failed == nil {
				starts[p.Partition] = p.LowWatermark
			}
		}
	}
	return starts, err
}

func deleteRecordsWords(topic string, partition int32, code int16) string {
	switch code {
	case kerr.OffsetOutOfRange.Code:
		return fmt.Sprintf("the offset lies beyond the end of partition %d of topic %q", partition, topic)
	case kerr.UnknownTopicOrPartition.Code:
		return fmt.Sprintf("there is no partition %d of topic %q", partition, topic)
	case kerr.InvalidTopicException.Code:
		return fmt.Sprintf("topic %q is internal; its records cannot be deleted", topic)
	case kerr.PolicyViolation.Code:
		return fmt.Sprintf("the records of topic %q cannot be deleted: its cleanup.policy does not delete", topic)
	}
	return ""
}

// ledElsewhere says that another broker leads a partition. Who may not do what they want
// with the topic is not told so, but refused by the handler.
func (a *Acts) ledElsewhere(who Asker, op auth.Operation, topic string, partitions []int32) error {
	t := a.Image().Topic(topic)
	if t == nil || !a.Sees(auth.Request{Principal: who.Principal, Groups: who.Groups, Host: who.Host, Operation: op, Type: auth.Topic, Name: topic}) {
		return nil
	}
	for _, i := range partitions {
		if i < 0 || int(i) >= len(t.Partitions) {
			continue
		}
		if leader := t.Partitions[i].Leader; leader != a.Node() {
			return &problem.Elsewhere{What: fmt.Sprintf("partition %d of topic %q", i, topic), Broker: leader}
		}
	}
	return nil
}
