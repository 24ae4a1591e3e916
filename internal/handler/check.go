package handler

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/protocol"
	"muster/internal/store"
)

// checkTimeout bounds a check of a part of a partition, with the wait for others.
const checkTimeout = 10 * time.Second

// checkFirst checks the first partition of an answer, if the request asks for it
// (protocol.TagCheck). One is checked at a time: it reads much, and no one is in a hurry.
func (h *Handler) checkFirst(ctx context.Context, req *kmsg.DescribeTopicPartitionsRequest, resp *kmsg.DescribeTopicPartitionsResponse) {
	for i := range req.Topics {
		from, asks := protocol.AsksCheck(&req.Topics[i].UnknownTags)
		for j := 0; asks && j < len(resp.Topics); j++ {
			if t := &resp.Topics[j]; *t.Topic == req.Topics[i].Topic && len(t.Partitions) > 0 {
				h.checkPartition(ctx, *t.Topic, &t.Partitions[0], from)
				return
			}
		}
	}
}

func (h *Handler) checkPartition(ctx context.Context, topic string, p *kmsg.DescribeTopicPartitionsResponseTopicPartition, from int64) {
	checker := h.opts.Checker
	if checker == nil {
		protocol.SetCheck(&p.UnknownTags, &protocol.Check{Unable: notRedis})
		return
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	select {
	case h.checking <- struct{}{}:
		defer func() { <-h.checking }()
	case <-ctx.Done():
		p.ErrorCode = kerr.RequestTimedOut.Code
		return
	}
	c, err := checker.Check(ctx, store.TopicPartition{Topic: topic, Partition: p.Partition}, from)
	if err != nil {
		h.opts.Logger.Warn("a partition could not be checked", "topic", topic, "partition", p.Partition, "error", err)
		p.ErrorCode = kerr.KafkaStorageError.Code
		return
	}
	out := &protocol.Check{Layout: string(c.Layout)}
	if c.Able {
		out.Start, out.End, out.Next, out.Records, out.Deleted, out.Wrong = c.Start, c.End, c.Next, c.Records, c.Deleted, c.Wrong
	} else {
		out.Unable = whyUnable(c.Layout)
	}
	protocol.SetCheck(&p.UnknownTags, out)
}

// What can be checked of a partition that has no index in Redis.
const notRedis = "its records are not in Redis, and have no index there; each batch has a checksum, " +
	"which consumers verify, and on disk the broker, after a crash, in what it wrote last"

func whyUnable(layout store.Layout) string {
	switch layout {
	case "":
		return "it has no log yet; the broker makes one when it opens the partition"
	case store.LayoutStream:
		return "in layout stream the offset of a record is the id of its entry, and there is no index that could say otherwise"
	case store.LayoutLog:
		return "in layout log an entry is a batch as the producer sent it, with its offsets and a checksum that consumers verify, and there is no index"
	}
	return fmt.Sprintf("it has layout %s", layout)
}
