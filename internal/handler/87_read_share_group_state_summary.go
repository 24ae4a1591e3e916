// ReadShareGroupStateSummary (key 87) tells how far share partitions are. Group coordinators
// send it when someone asks for the offsets of a share group. It is for brokers only, and not
// among what clients are told.
//
//	v0 flexible; v1 how many records are complete (KIP-1226)

package handler

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func (h *Handler) readShareGroupStateSummary(ctx context.Context, c *call) (kmsg.Response, error) {
	return h.shareGroupState(ctx, c)
}
