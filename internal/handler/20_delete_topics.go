// DeleteTopics (key 20) deletes topics with their records.
//
//	v1-3 as ever; v4 flexible; v5 error message; v6 by id

package handler

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/metadata"
)

func (h *Handler) deleteTopics(ctx context.Context, c *call) (kmsg.Response, error) {
	req := c.req.(*kmsg.DeleteTopicsRequest)
	resp := req.ResponseKind().(*kmsg.DeleteTopicsResponse)
	allowed := c.image.Config.Bool("delete.topic.enable")
	for _, name := range req.TopicNames {
		req.Topics = append(req.Topics, kmsg.DeleteTopicsRequestTopic{Topic: &name})
	}
	for _, t := range req.Topics {
		out := kmsg.NewDeleteTopicsResponseTopic()
		out.Topic, out.TopicID = t.Topic, t.TopicID
		out.ErrorCode, out.ErrorMessage = h.code(h.deleteTopic(ctx, c.image, &out, allowed))
		resp.Topics = append(resp.Topics, out)
	}
	return resp, nil
}

// deleteTopic deletes one topic, and fills in its name or id.
func (h *Handler) deleteTopic(ctx context.Context, image *metadata.Image, out *kmsg.DeleteTopicsResponseTopic, allowed bool) error {
	var t *metadata.Topic
	switch {
	case !allowed:
		return metadata.Refuse(kerr.TopicDeletionDisabled, "delete.topic.enable is false")
	case out.Topic != nil:
		if t = image.Topic(*out.Topic); t == nil {
			return metadata.Refuse(kerr.UnknownTopicOrPartition, "there is no topic %q", *out.Topic)
		}
	default:
		if t = image.TopicByID(out.TopicID); t == nil {
			return metadata.Refuse(kerr.UnknownTopicID, "there is no topic with id %s", metadata.TopicID(out.TopicID))
		}
	}
	out.Topic, out.TopicID = &t.Name, t.ID
	return h.opts.Controller.DeleteTopics(ctx, []string{t.Name})[0]
}
