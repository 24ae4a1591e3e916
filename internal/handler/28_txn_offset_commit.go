// TxnOffsetCommit (key 28) stores how far a group has got, as part of a
// transaction.
//
//	v0-1 the original fields; v2 leader epoch
//	v3   flexible; member, generation and group instance id (KIP-447)
//	v4   TRANSACTION_ABORTABLE; v5 adds the offsets to the transaction (KIP-890)
//
// Topics and partitions that do not exist are refused here, each for itself; the
// coordinator sees the rest. Left out: v6, topic ids.

package handler

import (
	"context"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/auth"
)

func (h *Handler) txnOffsetCommit(ctx context.Context, c *call) (kmsg.Response, error) {
	req := c.req.(*kmsg.TxnOffsetCommitRequest)
	req.Topics, _ = distinct(req.Topics, func(t *kmsg.TxnOffsetCommitRequestTopic) (string, *[]kmsg.TxnOffsetCommitRequestTopicPartition) {
		return t.Topic, &t.Partitions
	}, func(p *kmsg.TxnOffsetCommitRequestTopicPartition) int32 { return p.Partition })
	switch {
	case !c.may(auth.Write, auth.TransactionalID, req.TransactionalID):
		return h.opts.Groups.Fail(req, kerr.TransactionalIDAuthorizationFailed), nil
	case !c.may(auth.Read, auth.Group, req.Group):
		return h.opts.Groups.Fail(req, kerr.GroupAuthorizationFailed), nil
	}
	asked := req.Topics
	known, all := c.existingInTxn(asked)
	req.Topics = known
	h.converter.TxnCommits(ctx, c.image, req)
	resp := req.ResponseKind().(*kmsg.TxnOffsetCommitResponse)
	if all || len(known) > 0 {
		resp = h.awaitFrom(ctx, c, h.opts.Groups, req.Group).(*kmsg.TxnOffsetCommitResponse)
	}
	if all {
		return resp, nil
	}
	answers := map[partitionName]int16{}
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			answers[partitionName{topic: t.Topic, index: p.Partition}] = p.ErrorCode
		}
	}
	resp.Topics = nil
	for _, t := range asked {
		out := kmsg.NewTxnOffsetCommitResponseTopic()
		out.Topic = t.Topic
		missing := kerr.UnknownTopicOrPartition
		if !c.may(auth.Read, auth.Topic, t.Topic) {
			missing = kerr.TopicAuthorizationFailed
		}
		for _, p := range t.Partitions {
			e := kmsg.NewTxnOffsetCommitResponseTopicPartition()
			e.Partition, e.ErrorCode = p.Partition, missing.Code
			if code, ok := answers[partitionName{topic: t.Topic, index: p.Partition}]; ok {
				e.ErrorCode = code
			}
			out.Partitions = append(out.Partitions, e)
		}
		resp.Topics = append(resp.Topics, out)
	}
	return resp, nil
}

// existingInTxn returns the topics and partitions that exist and may be read, and
// whether that is all of them.
func (c *call) existingInTxn(topics []kmsg.TxnOffsetCommitRequestTopic) (known []kmsg.TxnOffsetCommitRequestTopic, all bool) {
	known, all = make([]kmsg.TxnOffsetCommitRequestTopic, 0, len(topics)), true
	for _, t := range topics {
		topic := c.image.Topic(t.Topic)
		if topic == nil || !c.may(auth.Read, auth.Topic, t.Topic) {
			all = false
			continue
		}
		missing := func(p kmsg.TxnOffsetCommitRequestTopicPartition) bool {
			return p.Partition < 0 || int(p.Partition) >= len(topic.Partitions)
		}
		if slices.ContainsFunc(t.Partitions, missing) {
			all = false
			t.Partitions = slices.DeleteFunc(slices.Clone(t.Partitions), missing)
		}
		known = append(known, t)
	}
	return known, all
}
