// OffsetCommit (key 8) stores how far a group has got.
//
//	v2-4 retention of its own    v7  group instance id
//	v5   the broker's retention  v8  flexible
//	v6   leader epoch            v9  group not found; v10 topic ids
//
// Topics and partitions that do not exist are refused here, each for itself; the
// coordinator sees the rest.

package handler

import (
	"context"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/auth"
	"muster/internal/journal"
)

func (h *Handler) offsetCommit(ctx context.Context, c *call) (kmsg.Response, error) {
	req := c.req.(*kmsg.OffsetCommitRequest)
	req.Topics, _ = distinct(req.Topics, func(t *kmsg.OffsetCommitRequestTopic) (string, *[]kmsg.OffsetCommitRequestTopicPartition) {
		return t.Topic + string(t.TopicID[:]), &t.Partitions
	}, func(p *kmsg.OffsetCommitRequestTopicPartition) int32 { return p.Partition })
	if !c.may(auth.Read, auth.Group, req.Group) {
		return h.opts.Groups.Fail(req, kerr.GroupAuthorizationFailed), nil
	}
	asked := req.Topics
	known, all := c.existing(req)
	req.Topics = known
	h.converter.Commits(ctx, c.image, req)
	resp := req.ResponseKind().(*kmsg.OffsetCommitResponse)
	if all || len(known) > 0 {
		resp = h.commit(ctx, c, req)
		h.noteCommitted(req, resp)
	}
	if all {
		return resp, nil
	}
	answers := map[string]map[int32]int16{}
	for _, t := range resp.Topics {
		if answers[t.Topic] == nil {
			answers[t.Topic] = map[int32]int16{}
		}
		for _, p := range t.Partitions {
			answers[t.Topic][p.Partition] = p.ErrorCode
		}
	}
	resp.Topics = nil
	for _, t := range asked {
		name, missing := c.commitTopic(req.Version, &t)
		out := kmsg.NewOffsetCommitResponseTopic()
		out.Topic, out.TopicID = t.Topic, t.TopicID
		for _, p := range t.Partitions {
			e := kmsg.NewOffsetCommitResponseTopicPartition()
			e.Partition, e.ErrorCode = p.Partition, missing.Code
			if code, ok := answers[name][p.Partition]; ok {
				e.ErrorCode = code
			}
			out.Partitions = append(out.Partitions, e)
		}
		resp.Topics = append(resp.Topics, out)
	}
	return resp, nil
}

// commit has a commit handled. A reset of a group that has members waits for them.
func (h *Handler) commit(ctx context.Context, c *call, req *kmsg.OffsetCommitRequest) *kmsg.OffsetCommitResponse {
	groups := c.asking(h.opts.Groups)
	if _, waits := journal.ResetAskOf(&req.UnknownTags); !waits {
		return groups.Do(ctx, req.Group, c.client(), req).(*kmsg.OffsetCommitResponse)
	}
	parked, done, ok := c.origin.Conn.Park(ctx, c.Size)
	if !ok {
		return groups.Fail(req, kerr.CoordinatorNotAvailable).(*kmsg.OffsetCommitResponse)
	}
	defer done()
	return groups.Do(parked, req.Group, c.client(), req).(*kmsg.OffsetCommitResponse)
}

// commitTopic returns the name of a topic, and the error for what does not
// exist of it. A topic that the client may not read has no name.
func (c *call) commitTopic(version int16, t *kmsg.OffsetCommitRequestTopic) (string, *kerr.Error) {
	name := t.Topic
	if version >= 10 {
		var ok bool
		if name, ok = topicName(c.image, t.TopicID); !ok {
			return "", kerr.UnknownTopicID
		}
	}
	if !c.may(auth.Read, auth.Topic, name) {
		return "", kerr.TopicAuthorizationFailed
	}
	return name, kerr.UnknownTopicOrPartition
}

// existing returns the topics and partitions of the request that exist and may be
// read, by name, and whether that is all of them.
func (c *call) existing(req *kmsg.OffsetCommitRequest) (known []kmsg.OffsetCommitRequestTopic, all bool) {
	known, all = make([]kmsg.OffsetCommitRequestTopic, 0, len(req.Topics)), true
	for _, t := range req.Topics {
		name, _ := c.commitTopic(req.Version, &t)
		topic := c.image.Topic(name)
		if topic == nil {
			all = false
			continue
		}
		missing := func(p kmsg.OffsetCommitRequestTopicPartition) bool {
			return p.Partition < 0 || int(p.Partition) >= len(topic.Partitions)
		}
		t.Topic = name
		if slices.ContainsFunc(t.Partitions, missing) {
			all = false
			t.Partitions = slices.DeleteFunc(slices.Clone(t.Partitions), missing)
		}
		known = append(known, t)
	}
	return known, all
}
