// WriteShareGroupState (key 85) stores what has changed of share partitions. Leaders of
// partitions send it. It is for brokers only, and not among what clients are told.
//
//	v0 flexible; v1 how many records are complete (KIP-1226)

package handler

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func (h *Handler) writeShareGroupState(ctx context.Context, c *call) (kmsg.Response, error) {
	return h.shareGroupState(ctx, c)
}
