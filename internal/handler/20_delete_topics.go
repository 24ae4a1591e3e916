// DeleteTopics (key 20) deletes topics with their records.
//
//	v1-3 the original fields; v4 flexible; v5 error message; v6 by id

package handler

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/auth"
	"muster/internal/metadata"
)

func (h *Handler) deleteTopics(ctx context.Context, c *call) (kmsg.Response, error) {
	req := c.req.(*kmsg.DeleteTopicsRequest)
	resp := req.ResponseKind().(*kmsg.DeleteTopicsResponse)
	allowed := c.image.Config.Bool("delete.topic.enable")
	for _, name := range req.TopicNames {
		req.Topics = append(req.Topics, kmsg.DeleteTopicsRequestTopic{Topic: &name})
	}
	repeated := repeatedIn(req.Topics, deletedKey)
	var names []string
	var at []int // where they stand in the answer
	for _, t := range once(req.Topics, deletedKey) {
		out := kmsg.NewDeleteTopicsResponseTopic()
		out.Topic, out.TopicID = t.Topic, t.TopicID
		err := c.findDeleted(&out, allowed)
		if repeated[deletedKey(&t)] {
			err = metadata.Refuse(kerr.InvalidRequest, "a topic is named more than once in the request")
		}
		if out.ErrorCode, out.ErrorMessage = h.code(err); err == nil {
			names, at = append(names, *out.Topic), append(at, len(resp.Topics))
		}
		resp.Topics = append(resp.Topics, out)
	}
	for i, err := range h.opts.Controller.DeleteTopics(ctx, names) {
		out := &resp.Topics[at[i]]
		out.ErrorCode, out.ErrorMessage = h.code(err)
	}
	return resp, nil
}

// deletedKey is what a topic is to be deleted by.
func deletedKey(t *kmsg.DeleteTopicsRequestTopic) string {
	if t.Topic == nil {
		return "id " + string(t.TopicID[:])
	}
	return *t.Topic
}

// findDeleted finds a topic that is to be deleted, and fills in its name and id. The
// name of one that is known by its id is told to those who may see it.
func (c *call) findDeleted(out *kmsg.DeleteTopicsResponseTopic, allowed bool) error {
	var t *metadata.Topic
	switch {
	case !allowed:
		return metadata.Refuse(kerr.TopicDeletionDisabled, "delete.topic.enable is false")
	case out.Topic != nil:
		if !c.may(auth.Delete, auth.Topic, *out.Topic) {
			return kerr.TopicAuthorizationFailed
		}
		if t = c.image.Topic(*out.Topic); t == nil {
			return metadata.Refuse(kerr.UnknownTopicOrPartition, "there is no topic %q", *out.Topic)
		}
	default:
		if t = c.image.TopicByID(out.TopicID); t == nil {
			return metadata.Refuse(kerr.UnknownTopicID, "there is no topic with id %s", metadata.TopicID(out.TopicID))
		}
		if !c.may(auth.Describe, auth.Topic, t.Name) {
			return kerr.TopicAuthorizationFailed
		}
	}
	out.Topic, out.TopicID = &t.Name, t.ID
	if !c.may(auth.Delete, auth.Topic, t.Name) {
		return kerr.TopicAuthorizationFailed
	}
	return nil
}
