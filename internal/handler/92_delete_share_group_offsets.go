// DeleteShareGroupOffsets (key 92) has a share group without members (KIP-932) forget topics:
// should it read them again, they begin where its share.auto.offset.reset says.
//
//	v0 the original fields

package handler

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/auth"
)

func (h *Handler) deleteShareGroupOffsets(ctx context.Context, c *call) (kmsg.Response, error) {
	req := c.req.(*kmsg.DeleteShareGroupOffsetsRequest)
	if !c.may(auth.Delete, auth.Group, req.GroupID) {
		return h.opts.Groups.Fail(req, kerr.GroupAuthorizationFailed), nil
	}
	var denied []kmsg.DeleteShareGroupOffsetsResponseTopic
	topics := once(req.Topics, func(t *kmsg.DeleteShareGroupOffsetsRequestTopic) string { return t.Topic })
	req.Topics = nil
	for _, t := range topics {
		if c.may(auth.Read, auth.Topic, t.Topic) {
			req.Topics = append(req.Topics, t)
			continue
		}
		out := kmsg.NewDeleteShareGroupOffsetsResponseTopic()
		out.Topic, out.ErrorCode = t.Topic, kerr.TopicAuthorizationFailed.Code
		denied = append(denied, out)
	}
	resp := c.asking(h.opts.Groups).Do(ctx, req.GroupID, c.client(), req).(*kmsg.DeleteShareGroupOffsetsResponse)
	if resp.ErrorCode == 0 {
		resp.Topics = append(resp.Topics, denied...)
	}
	return resp, nil
}
