package convert

import (
	"context"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/coordinator"
	"muster/internal/machine"
	"muster/internal/metadata"
	"muster/internal/protocol"
	"muster/internal/store"
)

// asker is who asks for a step that is about groups, as these see it, and the topic.
type asker struct {
	coordinator.Client
	image *metadata.Image
	topic *metadata.Topic
}

// reader is a group that a conversion concerns: it has committed offsets of the topic, or members that
// read it, or may.
type reader struct {
	name    string
	offsets []kmsg.OffsetFetchResponseGroupTopicPartition // those of before
	bare    int                                           // partitions without a committed offset
	members []kmsg.LeaveGroupRequestMember
}

// readers finds the groups of this broker that a conversion concerns.
func (c *Converter) readers(ctx context.Context, by asker) ([]*reader, error) {
	var failed *kerr.Error
	all := map[string]*reader{}
	kinds := map[string][]string{}
	note := func(code int16) {
		if err := kerr.TypedErrorForCode(code); err != nil && err != kerr.GroupIDNotFound {
			failed = err
		}
	}
	c.opts.Groups.All(ctx, by.Client, func() kmsg.Request {
		req := kmsg.NewPtrListGroupsRequest()
		req.Version = 5
		return req
	}, func(r kmsg.Response) {
		resp := r.(*kmsg.ListGroupsResponse)
		note(resp.ErrorCode)
		for _, g := range resp.Groups {
			all[g.Group] = &reader{name: g.Group}
			kinds[strings.ToLower(g.GroupType)] = append(kinds[strings.ToLower(g.GroupType)], g.Group)
		}
	})
	c.committedOf(ctx, by, all, note)
	c.classicReaders(ctx, by, kinds["classic"], all, note)
	c.consumerReaders(ctx, by, kinds["consumer"], all, note)
	var out []*reader
	for _, r := range all {
		if len(r.offsets)+len(r.members) > 0 {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b *reader) int { return strings.Compare(a.name, b.name) })
	if failed != nil {
		return nil, failed
	}
	return out, nil
}

// committedOf finds the offsets of before.
func (c *Converter) committedOf(ctx context.Context, by asker, all map[string]*reader, note func(int16)) {
	partitions := make([]int32, len(by.topic.Partitions))
	for i := range partitions {
		partitions[i] = int32(i)
	}
	names := make([]string, 0, len(all))
	for name := range all {
		names = append(names, name)
	}
	part := func(some []string) kmsg.Request {
		req := kmsg.NewPtrOffsetFetchRequest()
		req.Version = 8
		for _, name := range some {
			g := kmsg.NewOffsetFetchRequestGroup()
			g.Group, g.Topics = name, []kmsg.OffsetFetchRequestGroupTopic{{Topic: by.topic.Name, Partitions: partitions}}
			req.Groups = append(req.Groups, g)
		}
		return req
	}
	c.opts.Groups.Each(ctx, by.Client, names, part, func(r kmsg.Response) {
		for _, g := range r.(*kmsg.OffsetFetchResponse).Groups {
			note(g.ErrorCode)
			for i := range g.Topics {
				for _, p := range g.Topics[i].Partitions {
					switch {
					case store.IsOld(p.Offset):
						all[g.Group].offsets = append(all[g.Group].offsets, p)
					case p.Offset < 0:
						all[g.Group].bare++
					}
				}
			}
		}
	})
}

func (r *reader) add(member string, instance *string) {
	m := kmsg.NewLeaveGroupRequestMember()
	if m.MemberID = member; instance != nil {
		m.MemberID, m.InstanceID = "", instance
	}
	r.members = append(r.members, m)
}

// classicReaders finds the members of classic groups that read the topic. While a group rebalances it is not known
// what its members have.
func (c *Converter) classicReaders(ctx context.Context, by asker, names []string, all map[string]*reader, note func(int16)) {
	part := func(some []string) kmsg.Request {
		req := kmsg.NewPtrDescribeGroupsRequest()
		req.Version, req.Groups = 5, some
		return req
	}
	c.opts.Groups.Each(ctx, by.Client, names, part, func(r kmsg.Response) {
		for _, g := range r.(*kmsg.DescribeGroupsResponse).Groups {
			note(g.ErrorCode)
			if g.ProtocolType != "consumer" {
				continue
			}
			reads := g.State != "Stable" || slices.ContainsFunc(g.Members, func(m kmsg.DescribeGroupsResponseGroupMember) bool {
				has, ok := c.opts.Assigned(by.image, m.MemberAssignment)
				return ok && slices.ContainsFunc(has, func(tp store.TopicPartition) bool { return tp.Topic == by.topic.Name })
			})
			for i := 0; reads && i < len(g.Members); i++ {
				all[g.Group].add(g.Members[i].MemberID, g.Members[i].InstanceID)
			}
		}
	})
}

// consumerReaders does so for consumer groups.
func (c *Converter) consumerReaders(ctx context.Context, by asker, names []string, all map[string]*reader, note func(int16)) {
	part := func(some []string) kmsg.Request {
		req := kmsg.NewPtrConsumerGroupDescribeRequest()
		req.Groups = some
		return req
	}
	of := func(a *kmsg.Assignment) bool {
		return slices.ContainsFunc(a.TopicPartitions, func(tp kmsg.AssignmentTopicPartition) bool { return tp.Topic == by.topic.Name })
	}
	c.opts.Groups.Each(ctx, by.Client, names, part, func(r kmsg.Response) {
		for _, g := range r.(*kmsg.ConsumerGroupDescribeResponse).Groups {
			note(g.ErrorCode)
			for i := range g.Members {
				if m := &g.Members[i]; of(&m.Assignment) || of(&m.TargetAssignment) {
					all[g.Group].add(m.MemberID, m.InstanceID)
				}
			}
		}
	})
}

// concerned tells which groups a conversion concerns: none where all offsets stay.
func (c *Converter) concerned(ctx context.Context, by asker) (*protocol.Converting, error) {
	out := &protocol.Converting{}
	layouts, err := c.layouts(ctx, by.topic)
	if err != nil || !slices.ContainsFunc(layouts, func(l store.LogLayout) bool { return l.Renumbered || l.Layout == store.LayoutStream }) {
		return out, err
	}
	readers, err := c.readers(ctx, by)
	for _, r := range readers {
		g := protocol.ConvertingGroup{Name: r.name, Offsets: len(r.offsets), Members: len(r.members)}
		if g.Members > 0 {
			g.Uncommitted = r.bare
		}
		out.Groups = append(out.Groups, g)
	}
	return out, err
}

// removeReaders removes the members that have positions of before in their memory. They join again, and begin where their
// group has committed.
func (c *Converter) removeReaders(ctx context.Context, by asker) (*protocol.Converting, error) {
	readers, err := c.readers(ctx, by)
	if err != nil {
		return nil, err
	}
	out := &protocol.Converting{Done: true}
	reason := "topic " + by.topic.Name + " was converted to another layout"
	for _, r := range readers {
		if len(r.members) == 0 {
			continue
		}
		req := kmsg.NewPtrLeaveGroupRequest()
		req.Version, req.Group, req.Members = 5, r.name, r.members
		for i := range req.Members {
			req.Members[i].Reason = &reason
		}
		resp := c.opts.Groups.Do(ctx, r.name, by.Client, req).(*kmsg.LeaveGroupResponse)
		if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
			return nil, err
		}
		out.Groups = append(out.Groups, protocol.ConvertingGroup{Name: r.name, Members: len(r.members)})
	}
	return out, nil
}

// translate puts offsets of now in the place of those that groups have committed before.
func (c *Converter) translate(ctx context.Context, by asker) (*protocol.Converting, error) {
	readers, err := c.readers(ctx, by)
	if err != nil {
		return nil, err
	}
	out := &protocol.Converting{Done: true}
	for _, r := range readers {
		if len(r.offsets) == 0 {
			continue
		}
		n, err := c.translateOne(ctx, by, r)
		if err != nil {
			return nil, err
		}
		out.Groups = append(out.Groups, protocol.ConvertingGroup{Name: r.name, Offsets: n})
	}
	return out, nil
}

// translateOne does so for a group, and says how many offsets it has replaced.
func (c *Converter) translateOne(ctx context.Context, by asker, r *reader) (int, error) {
	places := make([]store.Place, len(r.offsets))
	for i, p := range r.offsets {
		places[i] = store.Place{TopicPartition: store.TopicPartition{Topic: by.topic.Name, Partition: p.Partition}, Offset: p.Offset}
	}
	found, err := c.opts.Store.Places(ctx, places)
	if err != nil {
		return 0, err
	}
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Version, req.Group, req.Generation = 9, r.name, -1
	req.Topics = []kmsg.OffsetCommitRequestTopic{{Topic: by.topic.Name}}
	parts := &req.Topics[0].Partitions
	for i, offset := range found {
		if offset == places[i].Offset {
			continue // Someone has committed it who makes offsets up.
		}
		p := kmsg.NewOffsetCommitRequestTopicPartition()
		p.Partition, p.Offset = places[i].Partition, offset
		machine.Replaces(places[i].Offset).Set(&p.UnknownTags)
		*parts = append(*parts, p)
	}
	if len(*parts) == 0 {
		return 0, nil
	}
	resp := c.opts.Groups.Do(ctx, r.name, by.Client, req).(*kmsg.OffsetCommitResponse)
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
				return 0, err
			}
		}
	}
	c.opts.Committed(req, resp)
	return len(*parts), nil
}
