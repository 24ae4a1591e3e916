package handler

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/metadata"
	"muster/internal/protocol"
	"muster/internal/store"
)

// tellRecords adds to an answer how many records partitions have, of the topics that the request
// asks it for (protocol.TagRecords). All are asked for at once.
func (h *Handler) tellRecords(ctx context.Context, image *metadata.Image, req *kmsg.DescribeTopicPartitionsRequest, resp *kmsg.DescribeTopicPartitionsResponse) {
	asked := map[string]bool{}
	for i := range req.Topics {
		asked[req.Topics[i].Topic] = protocol.AsksRecords(&req.Topics[i].UnknownTags)
	}
	var logs []store.TopicPartition
	var tags []*kmsg.Tags
	for i := range resp.Topics {
		t := &resp.Topics[i]
		for j := 0; asked[*t.Topic] && j < len(t.Partitions); j++ {
			p := &t.Partitions[j]
			logs, tags = append(logs, store.TopicPartition{Topic: *t.Topic, Partition: p.Partition}), append(tags, &p.UnknownTags)
		}
	}
	if h.opts.Lengths == nil || len(logs) == 0 {
		return
	}
	counts, err := h.opts.Lengths.Lengths(ctx, logs)
	if err != nil {
		h.opts.Logger.Debug("records could not be counted", "error", err)
	}
	for i, tp := range logs {
		switch {
		case err == nil && counts[i] >= 0:
			protocol.SetRecords(tags[i], counts[i])
		case !image.Dense(tp.Topic):
			protocol.SetRecords(tags[i], -1)
		}
	}
}
