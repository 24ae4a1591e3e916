// OffsetFetch (key 9) tells how far groups have got.
//
//	v2   null topics for all     v7   require stable
//	v5   leader epoch            v8   several groups
//	v6   flexible                v9   member; v10 topic ids
//
// The coordinator knows the form of version 8; older ones are translated. From
// version 8 on a tagged field of our own asks for lag in records (behind.go).

package handler

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/auth"
	"muster/internal/metadata"
)

func (h *Handler) offsetFetch(ctx context.Context, c *call) (kmsg.Response, error) {
	req := c.req.(*kmsg.OffsetFetchRequest)
	if req.Version < 8 {
		return h.offsetFetchOne(ctx, c, req), nil
	}
	resp := req.ResponseKind().(*kmsg.OffsetFetchResponse)
	resp.Groups = h.offsetsOf(ctx, c, req)
	return resp, nil
}

// offsetsOf answers a request in the form of version 8 or above.
func (h *Handler) offsetsOf(ctx context.Context, c *call, req *kmsg.OffsetFetchRequest) []kmsg.OffsetFetchResponseGroup {
	resp := kmsg.NewPtrOffsetFetchResponse()
	asked := map[string]*kmsg.OffsetFetchRequestGroup{}
	hidden := map[string][]kmsg.OffsetFetchResponseGroupTopic{}
	var names []string
	for i := range req.Groups {
		g := &req.Groups[i]
		if asked[g.Group] == nil {
			names = append(names, g.Group)
		}
		asked[g.Group] = g
		distinctTopics(g)
		if req.Version >= 10 {
			nameTopics(c.image, g)
		}
		hidden[g.Group] = c.hideTopics(g, req.Version >= 10)
	}
	part := func(some []string) kmsg.Request {
		out := kmsg.NewPtrOffsetFetchRequest()
		out.Version, out.RequireStable = req.Version, req.RequireStable
		for _, name := range some {
			out.Groups = append(out.Groups, *asked[name])
		}
		return out
	}
	names, denied := c.split(auth.Describe, auth.Group, names)
	c.asking(h.opts.Groups).Each(ctx, c.client(), names, part, func(r kmsg.Response) {
		resp.Groups = append(resp.Groups, r.(*kmsg.OffsetFetchResponse).Groups...)
	})
	for i := range resp.Groups {
		if asked[resp.Groups[i].Group].Topics == nil {
			c.omitTopics(&resp.Groups[i])
		}
		h.converter.Fetched(ctx, &resp.Groups[i])
		h.nativePositions(ctx, &resp.Groups[i])
	}
	h.countBehind(ctx, req, resp)
	for i := range resp.Groups {
		g := &resp.Groups[i]
		if req.Version >= 10 {
			identifyTopics(c.image, g)
		}
		if g.ErrorCode = fetchError(g.ErrorCode); g.ErrorCode == 0 {
			g.Topics = append(g.Topics, hidden[g.Group]...)
		}
	}
	return append(resp.Groups, deniedOffsets(denied)...)
}

// fetchError rewrites an error that older consumers do not expect here.
func fetchError(code int16) int16 {
	if code == kerr.CoordinatorNotAvailable.Code {
		return kerr.NotCoordinator.Code
	}
	return code
}

// offsetFetchOne serves the versions about one group.
func (h *Handler) offsetFetchOne(ctx context.Context, c *call, req *kmsg.OffsetFetchRequest) kmsg.Response {
	g := kmsg.NewOffsetFetchRequestGroup()
	g.Group = req.Group
	if req.Topics != nil {
		g.Topics = []kmsg.OffsetFetchRequestGroupTopic{}
	}
	for _, t := range req.Topics {
		g.Topics = append(g.Topics, kmsg.OffsetFetchRequestGroupTopic{Topic: t.Topic, Partitions: t.Partitions})
	}
	one := kmsg.NewPtrOffsetFetchRequest()
	one.Version, one.RequireStable = 8, req.RequireStable
	one.Groups = append(one.Groups, g)
	got := h.offsetsOf(ctx, c, one)[0]
	resp := req.ResponseKind().(*kmsg.OffsetFetchResponse)
	resp.ErrorCode = got.ErrorCode
	for _, t := range got.Topics {
		out := kmsg.NewOffsetFetchResponseTopic()
		out.Topic = t.Topic
		for _, p := range t.Partitions {
			e := kmsg.NewOffsetFetchResponseTopicPartition()
			e.Partition, e.Offset, e.LeaderEpoch, e.Metadata, e.ErrorCode = p.Partition, p.Offset, p.LeaderEpoch, p.Metadata, p.ErrorCode
			out.Partitions = append(out.Partitions, e)
		}
		resp.Topics = append(resp.Topics, out)
	}
	if resp.ErrorCode != 0 && req.Version < 2 {
		failPartitions(req, resp)
	}
	return resp
}

// failPartitions tells an error of the whole in version 1, which has a place for
// it only in the partitions.
func failPartitions(req *kmsg.OffsetFetchRequest, resp *kmsg.OffsetFetchResponse) {
	for _, t := range req.Topics {
		out := kmsg.NewOffsetFetchResponseTopic()
		out.Topic = t.Topic
		for _, p := range t.Partitions {
			e := kmsg.NewOffsetFetchResponseTopicPartition()
			e.Partition, e.Offset, e.ErrorCode = p, -1, resp.ErrorCode
			out.Partitions = append(out.Partitions, e)
		}
		resp.Topics = append(resp.Topics, out)
	}
}

// distinctTopics has each partition told once. Null, for all topics, stays null.
func distinctTopics(g *kmsg.OffsetFetchRequestGroup) {
	g.Topics, _ = distinct(g.Topics, func(t *kmsg.OffsetFetchRequestGroupTopic) (string, *[]int32) {
		return t.Topic + string(t.TopicID[:]), &t.Partitions
	}, itself)
}

// nameTopics fills in the names of topics that were asked for by id.
func nameTopics(image *metadata.Image, g *kmsg.OffsetFetchRequestGroup) {
	for i := range g.Topics {
		g.Topics[i].Topic, _ = topicName(image, g.Topics[i].TopicID)
	}
}

// identifyTopics fills in ids; a topic that does not exist has none.
func identifyTopics(image *metadata.Image, g *kmsg.OffsetFetchResponseGroup) {
	for i := range g.Topics {
		t := &g.Topics[i]
		if topic := image.Topic(t.Topic); topic != nil {
			t.TopicID = topic.ID
			continue
		}
		for j := range t.Partitions {
			t.Partitions[j].ErrorCode = kerr.UnknownTopicID.Code
		}
	}
}
