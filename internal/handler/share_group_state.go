package handler

import (
	"context"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/metadata"
	"muster/internal/share/requests"
)

// shareGroupState has the share coordinator answer one of the requests for the state of share
// partitions, each of which belongs to a partition of __share_group_state. Those that go to
// several are handled at the same time.
func (h *Handler) shareGroupState(ctx context.Context, c *call) (kmsg.Response, error) {
	// The newest metadata counts: the sender may have just created the topic.
	t := h.opts.Controller.Image().Topic(metadata.ShareStateTopic)
	if t == nil {
		return requests.Failed(c.req, kerr.CoordinatorNotAvailable), nil
	}
	parts := requests.Split(c.req, func(k requests.Key) int32 { return k.Shard(len(t.Partitions)) })
	var mu sync.Mutex
	var running beside
	var answers []kmsg.Response
	for shard, part := range parts {
		if len(parts) == 1 {
			return h.opts.ShareStates.DoAt(ctx, shard, c.client(), part), nil
		}
		running.Go(func() {
			resp := h.opts.ShareStates.DoAt(ctx, shard, c.client(), part)
			mu.Lock()
			defer mu.Unlock()
			answers = append(answers, resp)
		})
	}
	running.Wait()
	return requests.Merge(c.req, answers), nil
}
