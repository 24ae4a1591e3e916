package handler

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/coordinator"
	"muster/internal/store"
)

// Native shows groups to the other users of the store, who have groups of their
// own kind there. It is told what happens, and does not keep requests waiting.
type Native interface {
	// Assigned is called when a member has been given partitions.
	Assigned(group string, member coordinator.Client, partitions []store.TopicPartition)
	// Fetching is called for every partition of every fetch.
	Fetching(from coordinator.Client, tp store.TopicPartition, offset int64)
	// Committed is called when an offset was committed.
	Committed(group string, tp store.TopicPartition, offset int64)
	// Deleted is called when groups were deleted, and waits until they are gone
	// there too.
	Deleted(ctx context.Context, groups []string)
	// Positions says where a group of the store's own kind stands in partitions,
	// and -1 where there is none.
	Positions(ctx context.Context, group string, tps []store.TopicPartition) []int64
}

// noteAssigned passes on what a member was given.
func (h *Handler) noteAssigned(c *call, req *kmsg.SyncGroupRequest, resp *kmsg.SyncGroupResponse) {
	if h.opts.Native == nil || resp.ErrorCode != 0 || len(resp.MemberAssignment) == 0 {
		return
	}
	if tps, ok := AssignedPartitions(c.image, resp.MemberAssignment); ok {
		h.opts.Native.Assigned(req.Group, c.client(), tps)
	}
}

// noteCommitted passes on the offsets that were committed.
func (h *Handler) noteCommitted(req *kmsg.OffsetCommitRequest, resp *kmsg.OffsetCommitResponse) {
	if h.opts.Native == nil {
		return
	}
	failed := map[store.TopicPartition]bool{}
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			if p.ErrorCode != 0 {
				failed[store.TopicPartition{Topic: t.Topic, Partition: p.Partition}] = true
			}
		}
	}
	for _, t := range req.Topics {
		for _, p := range t.Partitions {
			if tp := (store.TopicPartition{Topic: t.Topic, Partition: p.Partition}); !failed[tp] {
				h.opts.Native.Committed(req.Group, tp, p.Offset)
			}
		}
	}
}

// noteDeleted passes on which groups were deleted.
func (h *Handler) noteDeleted(ctx context.Context, resp *kmsg.DeleteGroupsResponse) {
	if h.opts.Native == nil {
		return
	}
	var groups []string
	for _, g := range resp.Groups {
		if g.ErrorCode == 0 {
			groups = append(groups, g.Group)
		}
	}
	if len(groups) > 0 {
		h.opts.Native.Deleted(ctx, groups)
	}
}

// nativePositions answers for partitions that a group has committed nothing for,
// where a group of the store's own kind has a position.
func (h *Handler) nativePositions(ctx context.Context, g *kmsg.OffsetFetchResponseGroup) {
	if h.opts.Native == nil || g.ErrorCode != 0 {
		return
	}
	var tps []store.TopicPartition
	var at []*kmsg.OffsetFetchResponseGroupTopicPartition
	for i := range g.Topics {
		for j := range g.Topics[i].Partitions {
			if p := &g.Topics[i].Partitions[j]; p.ErrorCode == 0 && p.Offset == -1 {
				tps = append(tps, store.TopicPartition{Topic: g.Topics[i].Topic, Partition: p.Partition})
				at = append(at, p)
			}
		}
	}
	if len(tps) == 0 {
		return
	}
	for i, offset := range h.opts.Native.Positions(ctx, g.Group, tps) {
		at[i].Offset = offset
	}
}
