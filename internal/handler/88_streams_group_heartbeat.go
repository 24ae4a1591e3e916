// StreamsGroupHeartbeat (key 88) is how a thread of a Kafka Streams application (KIP-1071)
// joins its group, says what it is, learns which tasks it has, and leaves.
//
//	v0 the original fields
//
// Version 1 is left out: it asks for descriptions of topologies.

package handler

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/auth"
	"muster/internal/metadata"
)

func (h *Handler) streamsGroupHeartbeat(ctx context.Context, c *call) (kmsg.Response, error) {
	req := c.req.(*kmsg.StreamsGroupHeartbeatRequest)
	fail := func(err *kerr.Error, why string) (kmsg.Response, error) {
		resp := h.opts.Groups.Fail(req, err)
		if failed, ok := resp.(*kmsg.StreamsGroupHeartbeatResponse); ok && why != "" {
			failed.ErrorMessage = &why
		}
		return resp, nil
	}
	if !c.may(auth.Read, auth.Group, req.Group) {
		return fail(kerr.GroupAuthorizationFailed, "")
	}
	names := streamsTopics(req.Topology)
	for _, topic := range names {
		if metadata.IsInternal(topic) {
			return fail(kerr.StreamsInvalidTopology, "Use of Kafka internal topic "+topic+" in a Kafka Streams topology is prohibited.")
		}
		if metadata.CheckTopicName(topic) != nil {
			return fail(kerr.StreamsInvalidTopology, "Topic name "+topic+" is not valid.")
		}
	}
	for _, topic := range names {
		if !c.may(auth.Describe, auth.Topic, topic) {
			return fail(kerr.TopicAuthorizationFailed, "")
		}
	}
	return c.asking(h.opts.Groups).Do(ctx, req.Group, c.asks(), req), nil
}

// streamsTopics lists the topics of a topology, each once.
func streamsTopics(t *kmsg.StreamsGroupHeartbeatRequestTopology) []string {
	if t == nil {
		return nil
	}
	n := 0
	for i := range t.Subtopologies {
		s := &t.Subtopologies[i]
		n += len(s.SourceTopics) + len(s.RepartitionSinkTopics) + len(s.StateChangelogTopics) + len(s.RepartitionSourceTopics)
	}
	out := make([]string, 0, n)
	for i := range t.Subtopologies {
		s := &t.Subtopologies[i]
		out = append(append(out, s.SourceTopics...), s.RepartitionSinkTopics...)
		for _, list := range [][]kmsg.TopicInfo{s.StateChangelogTopics, s.RepartitionSourceTopics} {
			for j := range list {
				out = append(out, list[j].Topic)
			}
		}
	}
	return once(out, func(name *string) string { return *name })
}
