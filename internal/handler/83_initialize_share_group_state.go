// InitializeShareGroupState (key 83) begins the state of share partitions, or begins it anew
// under another state epoch. Group coordinators send it. It is for brokers only, and not among
// what clients are told.
//
//	v0 flexible

package handler

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func (h *Handler) initializeShareGroupState(ctx context.Context, c *call) (kmsg.Response, error) {
	return h.shareGroupState(ctx, c)
}
