// AddOffsetsToTxn (key 25) says that a transaction is about to commit offsets of
// a group.
//
//	v0-1 the original fields; v2 PRODUCER_FENCED; v3 flexible;
//	v4   TRANSACTION_ABORTABLE

package handler

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/auth"
	"muster/internal/metadata"
)

func (h *Handler) addOffsetsToTxn(ctx context.Context, c *call) (kmsg.Response, error) {
	req := c.req.(*kmsg.AddOffsetsToTxnRequest)
	switch {
	case !c.may(auth.Write, auth.TransactionalID, req.TransactionalID):
		return h.opts.Transactions.Fail(req, kerr.TransactionalIDAuthorizationFailed), nil
	case !c.may(auth.Read, auth.Group, req.Group):
		return h.opts.Transactions.Fail(req, kerr.GroupAuthorizationFailed), nil
	}
	// It is added as a partition of the offsets topic, which must exist for that.
	if err := h.ensureTopic(ctx, c.image, metadata.OffsetsTopic); err != nil {
		h.opts.Logger.Error("an internal topic could not be created", "topic", metadata.OffsetsTopic, "error", err)
		return h.opts.Transactions.Fail(req, kerr.CoordinatorNotAvailable), nil
	}
	return h.awaitFrom(ctx, c, h.opts.Transactions, req.TransactionalID), nil
}
