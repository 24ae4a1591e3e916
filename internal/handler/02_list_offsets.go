// ListOffsets (key 2) finds offsets by timestamp, or by a special timestamp.
//
//	v1   one offset per partition   v7   -3, the record of largest timestamp
//	v2   isolation level            v8   -4, the first offset on local disk
//	v4   leader epochs              v9   -5, the last tiered offset
//	v6   flexible                   v10  timeout; v11  -6, earliest to upload
//
// Nothing is tiered here: -4 is the log start, -5 and -6 find nothing.

package handler

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/auth"
	"muster/internal/metadata"
	"muster/internal/partition"
	"muster/internal/protocol"
	"muster/internal/store"
)

// Special timestamps.
const (
	tsLatest        = -1
	tsEarliest      = -2
	tsMax           = -3
	tsEarliestLocal = -4
	tsLatestTiered  = -5
	tsPendingUpload = -6
)

// firstVersion says which version brought a special timestamp.
var firstVersion = map[int64]int16{tsLatest: 1, tsEarliest: 1, tsMax: 7, tsEarliestLocal: 8, tsLatestTiered: 9, tsPendingUpload: 11}

func (h *Handler) listOffsets(ctx context.Context, c *call) (kmsg.Response, error) {
	req := c.req.(*kmsg.ListOffsetsRequest)
	resp := req.ResponseKind().(*kmsg.ListOffsetsResponse)
	topics, repeated := distinct(req.Topics, func(t *kmsg.ListOffsetsRequestTopic) (string, *[]kmsg.ListOffsetsRequestTopicPartition) {
		return t.Topic, &t.Partitions
	}, func(p *kmsg.ListOffsetsRequestTopicPartition) int32 { return p.Partition })
	fromBroker := c.fromBroker()
	for _, t := range topics {
		out := kmsg.NewListOffsetsResponseTopic()
		out.Topic = t.Topic
		allowed := c.may(auth.Describe, auth.Topic, t.Topic)
		for _, p := range t.Partitions {
			found := kmsg.NewListOffsetsResponseTopicPartition()
			found.Partition = p.Partition
			at, err := noOffset, kerr.InvalidRequest // Kafka's answer to what is named twice.
			if !allowed {
				err = kerr.TopicAuthorizationFailed
			} else if !repeated[partitionName{topic: t.Topic, index: p.Partition}] {
				at, err = h.listOffset(ctx, c.image, t.Topic, &p, req)
			}
			found.ErrorCode = errCode(err)
			found.Offset, found.Timestamp, found.LeaderEpoch = at.Offset, at.Timestamp, at.LeaderEpoch
			if err == nil && fromBroker {
				h.addBounds(t.Topic, &p, &found)
			}
			out.Partitions = append(out.Partitions, found)
		}
		resp.Topics = append(resp.Topics, out)
	}
	return resp, nil
}

// noOffset is the answer where there is none.
var noOffset = store.TimestampOffset{Offset: -1, Timestamp: -1, LeaderEpoch: partition.NoEpoch}

func (h *Handler) listOffset(ctx context.Context, image *metadata.Image, topic string, req *kmsg.ListOffsetsRequestTopicPartition, all *kmsg.ListOffsetsRequest) (store.TimestampOffset, *kerr.Error) {
	// As in Kafka this comes first, also for what does not exist.
	if first, special := firstVersion[req.Timestamp]; req.Timestamp < 0 && (!special || all.Version < first) {
		return noOffset, kerr.UnsupportedVersion
	}
	p, err := h.find(image, topic, req.Partition)
	if err != nil {
		return noOffset, err
	}
	if err := p.CheckEpoch(req.CurrentLeaderEpoch); err != nil {
		return noOffset, err
	}
	if err := p.Refresh(ctx); err != nil {
		return noOffset, err
	}
	limit := p.HighWatermark()
	if all.IsolationLevel == 1 {
		limit = p.LastStableOffset()
	}
	var found bool
	var at store.TimestampOffset
	switch req.Timestamp {
	case tsLatest:
		return store.TimestampOffset{Offset: limit, Timestamp: -1, LeaderEpoch: p.LeaderEpoch()}, nil
	case tsEarliest, tsEarliestLocal:
		start := p.LogStartOffset()
		return store.TimestampOffset{Offset: start, Timestamp: -1, LeaderEpoch: p.EpochAt(start)}, nil
	case tsLatestTiered, tsPendingUpload:
		return noOffset, nil
	case tsMax:
		at, found, err = p.MaxTimestamp(ctx, limit)
	default:
		at, found, err = p.OffsetForTimestamp(ctx, req.Timestamp, limit)
	}
	if err != nil || !found {
		return noOffset, err
	}
	return at, nil
}

// addBounds adds what a coordinator wants to know of a partition beyond the offset, if it
// asks.
func (h *Handler) addBounds(topic string, req *kmsg.ListOffsetsRequestTopicPartition, out *kmsg.ListOffsetsResponseTopicPartition) {
	readers, asks := protocol.AsksBounds(&req.UnknownTags)
	p := h.opts.Partitions.Get(topic, req.Partition)
	if !asks || p == nil {
		return
	}
	b := protocol.Bounds{Start: p.LogStartOffset(), LastStable: p.LastStableOffset(), Bytes: p.Size()}
	if h.opts.Tail != nil {
		b.Tail = h.opts.Tail(p, topic, req.Partition, out.Offset)
	}
	for _, r := range readers {
		b.Fetched = append(b.Fetched, h.fetched.ago(r.ClientID, r.Host, topic, req.Partition))
	}
	protocol.SetBounds(&out.UnknownTags, b)
}
