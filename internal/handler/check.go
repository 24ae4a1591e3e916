package handler

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/auth"
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

// convertFirst takes a step in the conversion of a topic, of the first one for which the request asks for it
// (protocol.TagConvert). Beyond what the request needs it takes ALTER on the topic.
func (h *Handler) convertFirst(ctx context.Context, c *call, req *kmsg.DescribeTopicPartitionsRequest, resp *kmsg.DescribeTopicPartitionsResponse) {
	i := slices.IndexFunc(req.Topics, func(t kmsg.DescribeTopicPartitionsRequestTopic) bool {
		return protocol.AsksConvert(&t.UnknownTags) != nil
	})
	if i < 0 {
		return
	}
	ask := protocol.AsksConvert(&req.Topics[i].UnknownTags)
	at := slices.IndexFunc(resp.Topics, func(t kmsg.DescribeTopicPartitionsResponseTopic) bool {
		return *t.Topic == req.Topics[i].Topic && len(t.Partitions) > 0
	})
	if at < 0 {
		return
	}
	t := &resp.Topics[at]
	if !c.may(auth.Alter, auth.Topic, *t.Topic) {
		*t = undescribed(*t.Topic, kerr.TopicAuthorizationFailed)
		return
	}
	p := &t.Partitions[0]
	out, err := h.converter.Step(ctx, c.image, c.origin.Host, ask, store.TopicPartition{Topic: *t.Topic, Partition: p.Partition})
	if err != nil {
		level := slog.LevelWarn
		if wire, ok := errors.AsType[*kerr.Error](err); ok && wire.Retriable {
			level = slog.LevelDebug // The command asks again.
		}
		h.opts.Logger.Log(ctx, level, "a step of a conversion failed", "topic", *t.Topic, "partition", p.Partition, "step", ask.Step, "error", err)
		p.ErrorCode, _ = h.code(err)
		return
	}
	protocol.SetConverting(&p.UnknownTags, out)
}

// notRedis says what stands for a check where partitions have no index.
const notRedis = "its records are not in Redis, and have no index there; each batch has a checksum, " +
	"which consumers verify, and on disk the broker, after a crash, in what it wrote last"
