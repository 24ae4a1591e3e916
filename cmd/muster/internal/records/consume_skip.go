package records

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/cmd/muster/internal/cli"
	"muster/cmd/muster/internal/source"
)

// skip moves past offsets that will never be delivered, so that a reader which
// waits for the end of a partition does not wait for ever. The records may have
// been deleted since we asked for the end, or belong to aborted transactions.
// The client passes over them, but does not tell how far it is.
func (c *consumer) skip(ctx context.Context) error {
	starts, err := listed(c.admin.ListStartOffsets(ctx, c.topics...))
	if err != nil {
		return err
	}
	details, err := c.admin.ListTopics(ctx, c.topics...)
	if err != nil {
		return cli.Plain(err)
	}
	for tp, s := range c.reading {
		if s.done {
			continue
		}
		s.next = max(s.next, starts[tp])
		for s.next < s.end {
			next, err := c.nextRecord(ctx, tp, details[tp.Topic].ID, details[tp.Topic].Partitions[tp.Partition].Leader, s.next)
			if err != nil {
				return err
			}
			if next == s.next {
				break // There is a record, which the client is about to deliver.
			}
			s.next = next
		}
		if s.next >= s.end {
			c.finish(tp)
		}
	}
	return nil
}

// nextRecord fetches at an offset and returns that of the first record, or, if
// all that was fetched is to be passed over, the offset after it.
func (c *consumer) nextRecord(ctx context.Context, tp source.TopicPartition, id [16]byte, leader int32, offset int64) (int64, error) {
	part := kmsg.NewFetchRequestTopicPartition()
	part.Partition, part.FetchOffset, part.PartitionMaxBytes = tp.Partition, offset, 1<<20
	topic := kmsg.NewFetchRequestTopic()
	topic.Topic, topic.TopicID = tp.Topic, id
	topic.Partitions = append(topic.Partitions, part)
	req := kmsg.NewPtrFetchRequest()
	req.MaxBytes = 1 << 20
	if c.isolation == kgo.ReadCommitted() {
		req.IsolationLevel = 1
	}
	req.Topics = append(req.Topics, topic)
	answer, err := c.client.Broker(int(leader)).RetriableRequest(ctx, req)
	if err != nil {
		return 0, cli.Plain(err)
	}
	resp := answer.(*kmsg.FetchResponse)
	if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 {
		return 0, fmt.Errorf("the broker did not answer for %s-%d", tp.Topic, tp.Partition)
	}
	opts := kgo.ProcessFetchPartitionOpts{
		KeepControlRecords: true, Offset: offset, IsolationLevel: c.isolation, Topic: tp.Topic, Partition: tp.Partition,
	}
	fetched, next := kgo.ProcessFetchPartition(opts, &resp.Topics[0].Partitions[0], kgo.DefaultDecompressor(), nil)
	switch {
	case fetched.Err != nil:
		return 0, cli.TopicError(tp.Topic, fetched.Err, "")
	case len(fetched.Records) > 0:
		return fetched.Records[0].Offset, nil
	}
	return max(next, offset), nil
}
