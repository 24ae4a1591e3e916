package handler

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/coordinator"
)

// Groups is the group coordinator.
type Groups interface {
	Do(ctx context.Context, group string, from coordinator.Client, req kmsg.Request) kmsg.Response
	Each(ctx context.Context, from coordinator.Client, groups []string, part func(groups []string) kmsg.Request, merge func(kmsg.Response))
	// Fail is the answer that tells of an error of the coordinator.
	Fail(req kmsg.Request, err *kerr.Error) kmsg.Response
	All(ctx context.Context, from coordinator.Client, part func() kmsg.Request, merge func(kmsg.Response))
}

func (c *call) client() coordinator.Client {
	return coordinator.Client{ID: c.ClientID, Host: c.origin.Host}
}

// await has a request about one group handled that may wait for other members. It
// waits for as long as its client does.
func (h *Handler) await(ctx context.Context, c *call, group string) kmsg.Response {
	parked, done, ok := c.origin.Conn.Park(ctx, c.Size)
	if !ok {
		return h.opts.Groups.Fail(c.req, kerr.CoordinatorNotAvailable)
	}
	defer done()
	return h.opts.Groups.Do(parked, group, c.client(), c.req)
}
