// DeleteShareGroupState (key 86) deletes the state of share partitions. Group coordinators send
// it. It is for brokers only, and not among what clients are told.
//
//	v0 flexible

package handler

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func (h *Handler) deleteShareGroupState(ctx context.Context, c *call) (kmsg.Response, error) {
	return h.shareGroupState(ctx, c)
}
