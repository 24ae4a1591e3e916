// CreatePartitions (key 37) raises the number of partitions of topics.
//
//	v0-1 the original fields; v2 flexible; v3 error codes
//
// Replica assignments are those of CreateTopics.

package handler

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/auth"
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
		leaders, err := newLeaders(c.image, t)
		if !c.may(auth.Alter, auth.Topic, t.Topic) {
			err = kerr.TopicAuthorizationFailed
		}
		if repeated[t.Topic] {
			err = metadata.Refuse(kerr.InvalidRequest, "topic %q is named more than once in the request", t.Topic)
		}
		if err == nil {
			err = h.opts.Controller.GrowTopic(ctx, t.Topic, t.Count, leaders, req.ValidateOnly)
		}
		out := kmsg.NewCreatePartitionsResponseTopic()
		out.Topic = t.Topic
		out.ErrorCode, out.ErrorMessage = h.code(err)
		resp.Topics = append(resp.Topics, out)
	}
	return resp, nil
}

// newLeaders reads who is to lead the new partitions, if the request says so.
func newLeaders(image *metadata.Image, t *kmsg.CreatePartitionsRequestTopic) (leaders []int32, err error) {
	old := image.Topic(t.Topic)
	if old == nil || t.Assignment == nil {
		return nil, nil
	}
	if len(t.Assignment) != int(t.Count)-len(old.Partitions) {
		return nil, metadata.Refuse(kerr.InvalidReplicaAssignment, "the assignment is for %d new partitions, not %d", len(t.Assignment), int(t.Count)-len(old.Partitions))
	}
	for _, a := range t.Assignment {
		leader, err := firstReplica(image, a.Replicas, t.Assignment[0].Replicas)
		if err != nil {
			return nil, err
		}
		leaders = append(leaders, leader)
	}
	return leaders, nil
}
