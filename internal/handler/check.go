package handler

import (
	"context"
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
	asked := map[string]int64{} // A request may have very many topics, and an answer too.
	for i := range req.Topics {
		if from, asks := protocol.AsksCheck(&req.Topics[i].UnknownTags); asks {
			asked[req.Topics[i].Topic] = from
		}
	}
	for i := 0; i < len(resp.Topics) && len(asked) > 0; i++ {
		t := &resp.Topics[i]
		if from, asks := asked[*t.Topic]; asks && len(t.Partitions) > 0 {
			h.checkPartition(ctx, *t.Topic, &t.Partitions[0], from)
			return
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
	protocol.SetCheck(&p.UnknownTags, &protocol.Check{
		Unable: c.Unable, Layout: string(c.Layout), Start: c.Start, End: c.End, Next: c.Next, Records: c.Records, Deleted: c.Deleted, Wrong: c.Wrong,
	})
}

// notRedis says what stands for a check where partitions have no index.
const notRedis = "its records are not in Redis, and have no index there; each batch has a checksum, " +
	"which consumers verify, and on disk the broker, after a crash, in what it wrote last"
