// DescribeProducers (key 61) tells which producers a partition remembers.
//
//	v0 flexible

package handler

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/auth"
)

func (h *Handler) describeProducers(_ context.Context, c *call) (kmsg.Response, error) {
	req := c.req.(*kmsg.DescribeProducersRequest)
	resp := req.ResponseKind().(*kmsg.DescribeProducersResponse)
	topics, _ := distinct(req.Topics, func(t *kmsg.DescribeProducersRequestTopic) (string, *[]int32) { return t.Topic, &t.Partitions }, itself)
	for _, t := range topics {
		out := kmsg.NewDescribeProducersResponseTopic()
		out.Topic = t.Topic
		allowed := c.may(auth.Read, auth.Topic, t.Topic)
		for _, index := range t.Partitions {
			part := kmsg.NewDescribeProducersResponseTopicPartition()
			part.Partition = index
			p, err := h.find(c.image, t.Topic, index)
			if !allowed {
				err = kerr.TopicAuthorizationFailed
			}
			part.ErrorCode = errCode(err)
			if err == nil {
				for _, x := range p.Producers() {
					a := kmsg.NewDescribeProducersResponseTopicPartitionActiveProducer()
					a.ProducerID, a.ProducerEpoch, a.LastTimestamp = x.ID, int32(x.Epoch), x.LastTimestamp
					a.CoordinatorEpoch, a.CurrentTxnStartOffset = x.CoordinatorEpoch, x.TxnFirst
					a.LastSequence = -1
					if n := len(x.Batches); n > 0 {
						a.LastSequence = x.Batches[n-1].LastSequence
					}
					part.ActiveProducers = append(part.ActiveProducers, a)
				}
			}
			out.Partitions = append(out.Partitions, part)
		}
		resp.Topics = append(resp.Topics, out)
	}
	return resp, nil
}
