package handler

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/auth"
)

// hideTopics takes the topics out of a question that the client may not describe, and
// returns the answers for them. An id that no one knows has no name here, and is found
// out later.
func (c *call) hideTopics(g *kmsg.OffsetFetchRequestGroup, byID bool) (hidden []kmsg.OffsetFetchResponseGroupTopic) {
	if c.rules() == nil || !c.sees(auth.Describe, auth.Group, g.Group) {
		return nil // All is told, or nothing.
	}
	g.Topics = slices.DeleteFunc(g.Topics, func(t kmsg.OffsetFetchRequestGroupTopic) bool {
		if byID && t.Topic == "" || c.may(auth.Describe, auth.Topic, t.Topic) {
			return false
		}
		out := kmsg.NewOffsetFetchResponseGroupTopic()
		out.Topic, out.TopicID = t.Topic, t.TopicID
		for _, index := range t.Partitions {
			p := kmsg.NewOffsetFetchResponseGroupTopicPartition()
			p.Partition, p.Offset, p.ErrorCode = index, -1, kerr.TopicAuthorizationFailed.Code
			out.Partitions = append(out.Partitions, p)
		}
		hidden = append(hidden, out)
		return true
	})
	return hidden
}

// omitTopics leaves the topics out of an answer about all of them that the client may
// not describe.
func (c *call) omitTopics(g *kmsg.OffsetFetchResponseGroup) {
	g.Topics = slices.DeleteFunc(g.Topics, func(t kmsg.OffsetFetchResponseGroupTopic) bool {
		return !c.sees(auth.Describe, auth.Topic, t.Topic)
	})
}

// deniedOffsets answers for groups that the client may not describe.
func deniedOffsets(groups []string) (out []kmsg.OffsetFetchResponseGroup) {
	for _, id := range groups {
		g := kmsg.NewOffsetFetchResponseGroup()
		g.Group, g.ErrorCode = id, kerr.GroupAuthorizationFailed.Code
		out = append(out, g)
	}
	return out
}
