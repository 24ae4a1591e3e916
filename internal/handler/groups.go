package handler

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/coordinator"
)

// Coordinator is that of groups, or that of transactions. An id is a group id or
// a transactional id.
type Coordinator interface {
	Do(ctx context.Context, id string, from coordinator.Client, req kmsg.Request) kmsg.Response
	// DoAt has a request handled that is about one partition of the topic.
	DoAt(ctx context.Context, partition int32, from coordinator.Client, req kmsg.Request) kmsg.Response
	Each(ctx context.Context, from coordinator.Client, ids []string, part func(ids []string) kmsg.Request, merge func(kmsg.Response))
	// Fail is the answer that tells of an error of the coordinator.
	Fail(req kmsg.Request, err *kerr.Error) kmsg.Response
	All(ctx context.Context, from coordinator.Client, part func() kmsg.Request, merge func(kmsg.Response))
}

// client is where a request comes from, whoever logged in.
func (c *call) client() coordinator.Client {
	return coordinator.Client{ID: c.ClientID, Host: c.origin.Host}
}

// asks is client together with who logged in, for coordinators that look for things
// which not everyone may know of.
func (c *call) asks() coordinator.Client {
	from := c.client()
	from.Asker.Principal, from.Asker.Groups = c.principal(), c.origin.Groups
	if c.rules() != nil {
		from.Asker.Host = c.rights.host // Else no rule is asked.
	}
	return from
}

// await has a request about one group handled that may wait for other members. It
// waits for as long as its client does.
func (h *Handler) await(ctx context.Context, c *call, group string) kmsg.Response {
	return h.awaitFrom(ctx, c, h.opts.Groups, group)
}

// awaitFrom has a request about one group or transaction handled that may wait.
func (h *Handler) awaitFrom(ctx context.Context, c *call, from Coordinator, id string) kmsg.Response {
	parked, done, ok := c.origin.Conn.Park(ctx, c.Size)
	if !ok {
		return from.Fail(c.req, kerr.CoordinatorNotAvailable)
	}
	defer done()
	return from.Do(parked, id, c.asks(), c.req)
}
