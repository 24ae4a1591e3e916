// CreatePartitions (key 37) raises the number of partitions of topics.
//
//	v0-1 as ever; v2 flexible; v3 error codes
//
// Replica assignments are accepted if they name this broker alone.

package handler

import (
	"context"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/metadata"
)

func (h *Handler) createPartitions(ctx context.Context, c *call) (kmsg.Response, error) {
	req := c.req.(*kmsg.CreatePartitionsRequest)
	resp := req.ResponseKind().(*kmsg.CreatePartitionsResponse)
	name := func(t *kmsg.CreatePartitionsRequestTopic) string { return t.Topic }
	repeated := repeatedIn(req.Topics, name)
	req.Topics = once(req.Topics, name)
	for i := range req.Topics {
		t := &req.Topics[i]
		err := h.checkNewPartitions(c.image, t)
		if repeated[t.Topic] {
			err = metadata.Refuse(kerr.InvalidRequest, "topic %q is named more than once in the request", t.Topic)
		}
		if err == nil {
			err = h.opts.Controller.GrowTopic(ctx, t.Topic, t.Count, req.ValidateOnly)
		}
		out := kmsg.NewCreatePartitionsResponseTopic()
		out.Topic = t.Topic
		out.ErrorCode, out.ErrorMessage = h.code(err)
		resp.Topics = append(resp.Topics, out)
	}
	return resp, nil
}

func (h *Handler) checkNewPartitions(image *metadata.Image, t *kmsg.CreatePartitionsRequestTopic) error {
	old := image.Topic(t.Topic)
	if old == nil || t.Assignment == nil {
		return nil
	}
	if len(t.Assignment) != int(t.Count)-len(old.Partitions) {
		return metadata.Refuse(kerr.InvalidReplicaAssignment, "the assignment is for %d new partitions, not %d", len(t.Assignment), int(t.Count)-len(old.Partitions))
	}
	for _, a := range t.Assignment {
		if !slices.Equal(a.Replicas, []int32{h.opts.NodeID}) {
			return metadata.Refuse(kerr.InvalidReplicaAssignment, "every partition needs the one replica %d", h.opts.NodeID)
		}
	}
	return nil
}
