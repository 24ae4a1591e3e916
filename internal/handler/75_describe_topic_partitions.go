// DescribeTopicPartitions (key 75) describes topics page by page.
//
//	v0 flexible
//
// Tagged fields of muster's own ask how many records partitions have, to check one, and to convert a topic: see lengths.go and check.go.

package handler

import (
	"context"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/auth"
	"muster/internal/metadata"
)

// maxDescribed is how many partitions an answer holds at most, as in Kafka
// (max.request.partition.size.limit).
const maxDescribed = 2000

func (h *Handler) describeTopicPartitions(ctx context.Context, c *call) (kmsg.Response, error) {
	req := c.req.(*kmsg.DescribeTopicPartitionsRequest)
	resp := req.ResponseKind().(*kmsg.DescribeTopicPartitionsResponse)
	room := max(1, min(int(req.ResponsePartitionLimit), maxDescribed))
	if req.Cursor != nil && !goodCursor(req) {
		for _, t := range once(req.Topics, func(t *kmsg.DescribeTopicPartitionsRequestTopic) string { return t.Topic }) {
			resp.Topics = append(resp.Topics, undescribed(t.Topic, kerr.InvalidRequest))
		}
		return resp, nil
	}
	for _, name := range c.describedNames(req) {
		from := int32(0)
		if req.Cursor != nil && req.Cursor.Topic == name {
			from = req.Cursor.Partition
		}
		if room == 0 {
			resp.NextCursor = cursor(name, from)
			break
		}
		if !c.may(auth.Describe, auth.Topic, name) {
			resp.Topics = append(resp.Topics, undescribed(name, kerr.TopicAuthorizationFailed))
			continue
		}
		t := c.image.Topic(name)
		if t == nil {
			resp.Topics = append(resp.Topics, undescribed(name, kerr.UnknownTopicOrPartition))
			continue
		}
		next := min(int(from)+room, len(t.Partitions))
		out := c.describePartitions(t, int(from), next)
		room -= len(out.Partitions)
		resp.Topics = append(resp.Topics, out)
		if next < len(t.Partitions) {
			resp.NextCursor = cursor(name, int32(next))
			break
		}
	}
	h.tellRecords(ctx, c.image, req, resp)
	h.checkFirst(ctx, req, resp)
	h.convertFirst(ctx, c, req, resp)
	return resp, nil
}

// goodCursor says whether a cursor is on one of the topics that are asked for,
// where it must be unless all are.
func goodCursor(req *kmsg.DescribeTopicPartitionsRequest) bool {
	asked := slices.ContainsFunc(req.Topics, func(t kmsg.DescribeTopicPartitionsRequestTopic) bool { return t.Topic == req.Cursor.Topic })
	return req.Cursor.Partition >= 0 && (asked || len(req.Topics) == 0)
}

func undescribed(topic string, err *kerr.Error) kmsg.DescribeTopicPartitionsResponseTopic {
	out := kmsg.NewDescribeTopicPartitionsResponseTopic()
	out.Topic, out.ErrorCode = &topic, err.Code
	return out
}

// describedNames lists what was asked for, all topics that the client may see if
// nothing was, in order and from the cursor on.
func (c *call) describedNames(req *kmsg.DescribeTopicPartitionsRequest) []string {
	var names []string
	for _, t := range req.Topics {
		names = append(names, t.Topic)
	}
	if len(req.Topics) == 0 {
		for _, t := range c.image.Topics() {
			if c.sees(auth.Describe, auth.Topic, t.Name) {
				names = append(names, t.Name)
			}
		}
	}
	slices.Sort(names)
	if req.Cursor != nil {
		i, _ := slices.BinarySearch(names, req.Cursor.Topic)
		names = names[i:]
	}
	return slices.Compact(names)
}

func cursor(topic string, partition int32) *kmsg.DescribeTopicPartitionsResponseNextCursor {
	c := kmsg.NewDescribeTopicPartitionsResponseNextCursor()
	c.Topic, c.Partition = topic, partition
	return &c
}

func (c *call) describePartitions(t *metadata.Topic, from, next int) kmsg.DescribeTopicPartitionsResponseTopic {
	out := kmsg.NewDescribeTopicPartitionsResponseTopic()
	out.Topic, out.TopicID, out.IsInternal = &t.Name, t.ID, t.Internal
	out.AuthorizedOperations = c.operations(auth.Topic, t.Name)
	for i := from; i < next; i++ {
		p := t.Partitions[i]
		part := kmsg.NewDescribeTopicPartitionsResponseTopicPartition()
		part.Partition, part.LeaderID, part.LeaderEpoch = int32(i), p.Leader, p.LeaderEpoch
		part.Replicas, part.ISR = []int32{p.Leader}, []int32{p.Leader}
		// There are none, but null is more than the Java client of 4.4 can take.
		part.EligibleLeaderReplicas, part.LastKnownELR = []int32{}, []int32{}
		out.Partitions = append(out.Partitions, part)
	}
	return out
}
